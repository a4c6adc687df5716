"""A graph built node by node, with inferred types."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from ...base.checked_values import show_name
from ...base.classes.dataclass import dataclass
from .graph import Constant, Graph, Node, State
from .operation import Operation
from .types import Array, GraphError, Quantization, TensorType
from .verify_graph import verify_graph


@dataclass
class Builder:
    """A graph while it is being put together, tensor by tensor, in execution order."""

    name: str = ""
    inputs: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict, repr=False)   # of the last like a name

    def input(self, name: str, type_: TensorType) -> str:
        self._is_new(name)
        self.inputs[name] = type_
        return name

    def constant(self, name: str, array: Array,
                 quantization: Quantization | None = None) -> str:
        """Add a constant. Its name is made different from others if need be, and returned."""
        name = self.fresh(name)
        array = np.asarray(array, order="C")
        type_ = TensorType(array.shape, str(array.dtype), quantization)
        self.constants[name] = Constant(type_, array)
        return name

    def add(self, name: str, operation: Operation, *, dtype: str | None = None,
            quantization: Quantization | None = None, origin: str = "") -> str:
        """Add a node. The shape of its result, and unless told otherwise the type of its numbers
        and what they stand for, follow from its operands."""
        self._is_new(name)
        place = origin or name
        try:
            types = [self.type_of(each) for each in operation.operands()]
            expected = operation.infer(*types)
            type_ = TensorType(expected.shape, dtype or expected.dtype,
                               quantization if dtype or quantization else expected.quantization)
            operation.check(type_, *types)
        except GraphError as error:
            raise GraphError(f"{show_name(place)}: {operation.title()}: {error}") from None
        self.nodes[name] = Node(operation, type_, origin)
        return name

    def type_of(self, name: str) -> TensorType:
        for table in (self.inputs, self.constants, self.nodes):
            if name in table:
                found = table[name]
                return found if isinstance(found, TensorType) else found.type
        raise GraphError(f"{show_name(name)} is read before it is computed; a graph must have no "
                         f"cycle")

    def array(self, name: str) -> Array | None:
        """The numbers of a tensor, if they are known."""
        return self.constants[name].array if name in self.constants else None

    def fresh(self, name: str) -> str:
        """A name that no tensor has yet."""
        number = self.numbers.get(name, 1)
        found = name if number == 1 else f"{name}.{number}"
        while found in self.inputs or found in self.constants or found in self.nodes:
            number += 1
            found = f"{name}.{number}"
        self.numbers[name] = number
        return found

    def graph(self, outputs: tuple[str, ...]) -> Graph:
        """The finished graph. Results of states are outputs after all others."""
        results = (each.result for each in self.states.values())
        graph = Graph(dict(self.inputs), dict(self.constants), dict(self.nodes),
                      (*outputs, *results), self.name, dict(self.states))
        verify_graph(graph)
        return graph

    def _is_new(self, name: str) -> None:
        if self.fresh(name) != name:
            raise GraphError(f"{show_name(name)} is computed twice")
