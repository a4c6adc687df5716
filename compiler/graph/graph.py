"""The graph: inputs, constants and nodes in execution order, each under the name of the one tensor
that it produces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...base.checked_values import printable, show_name
from .operation import Operation, describe_operation
from .types import Array, GraphError, Quantization, TensorType


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor whose numbers are known."""

    type: TensorType
    array: Array

    def __post_init__(self) -> None:
        if self.array.shape != self.type.shape or self.array.dtype != np.dtype(self.type.dtype):
            raise GraphError(f"a constant of {self.type.plain()} holds {self.array.dtype} of "
                             f"shape {self.array.shape}")
        frozen = self.array.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "array", frozen)


@dataclass(frozen=True)
class Node:
    """An operation and the type of its result. `origin` is what the model calls it."""

    operation: Operation
    type: TensorType
    origin: str = ""


@dataclass(frozen=True)
class Graph:
    """A network. Names of tensors are those of the model, wherever it has one."""

    inputs: Mapping[str, TensorType]
    constants: Mapping[str, Constant]
    nodes: Mapping[str, Node]
    outputs: tuple[str, ...]
    name: str = ""

    def type_of(self, tensor: str) -> TensorType:
        """The type of any tensor."""
        return self.types[tensor]

    @cached_property
    def types(self) -> Mapping[str, TensorType]:
        """Of all tensors, by name."""
        return {**self.inputs, **{name: each.type for name, each in self.constants.items()},
                **{name: each.type for name, each in self.nodes.items()}}

    @cached_property
    def uses(self) -> Mapping[str, int]:
        """How often each tensor is read, by nodes or as an output."""
        count = Counter(self.outputs)
        for node in self.nodes.values():
            count.update(node.operation.operands())
        return count

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes that read each tensor, in order."""
        found: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            for each in dict.fromkeys(node.operation.operands()):
                found.setdefault(each, []).append(name)
        return {name: tuple(each) for name, each in found.items()}

    def array(self, tensor: str | None) -> Array | None:
        """The numbers of a tensor, if they are known."""
        found = self.constants.get(tensor) if tensor is not None else None
        return None if found is None else found.array

    def lines(self) -> Iterator[str]:
        """The graph as a program, a line for each tensor that is not constant."""
        for name, type_ in self.inputs.items():
            yield printable(f"{name}: {type_} = input")
        for name, node in self.nodes.items():
            yield printable(f"{name}: {node.type} = {describe_operation(node.operation)}")
        yield printable(f"output {', '.join(self.outputs)}")

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass
class Builder:
    """A graph while it is being put together, tensor by tensor, in execution order."""

    name: str = ""
    inputs: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
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
        """The finished graph."""
        from .verify import verify_graph

        graph = Graph(dict(self.inputs), dict(self.constants), dict(self.nodes), outputs, self.name)
        verify_graph(graph)
        return graph

    def _is_new(self, name: str) -> None:
        if self.fresh(name) != name:
            raise GraphError(f"{show_name(name)} is computed twice")


def with_nodes(graph: Graph, nodes: Mapping[str, Node],
               constants: Mapping[str, Constant] | None = None) -> Graph:
    """The graph with other nodes, and constants if given."""
    return replace(graph, nodes=nodes,
                   constants=graph.constants if constants is None else constants)
