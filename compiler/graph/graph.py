"""The graph: inputs, constants and nodes in execution order, each under the name of the one tensor
that it produces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from ...base.checked_values import printable, show_name
from ...base.classes.dataclass import dataclass
from .operation import Operation, describe_operation
from .types import Array, GraphError, TensorType


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


@dataclass(frozen=True, eq=False)
class State:
    """What an input holds that is remembered from one inference to the next: `initial` before the
    first, and then `result`, a node that is an output, of the inference before."""

    result: str
    initial: Array

    def __post_init__(self) -> None:
        frozen = np.array(self.initial, order="C")
        frozen.flags.writeable = False
        object.__setattr__(self, "initial", frozen)


@dataclass(frozen=True)
class Graph:
    """A network. Names of tensors are those of the model, wherever it has one.

    Inputs and outputs include those of states, so that a graph alone is one inference, without
    memory. `states` is by names of inputs.
    """

    inputs: Mapping[str, TensorType]
    constants: Mapping[str, Constant]
    nodes: Mapping[str, Node]
    outputs: tuple[str, ...]
    name: str = ""
    states: Mapping[str, State] = field(default_factory=dict)

    @property
    def user_inputs(self) -> dict[str, TensorType]:
        """What whoever runs the network gives."""
        return {name: type_ for name, type_ in self.inputs.items() if name not in self.states}

    @property
    def user_outputs(self) -> tuple[str, ...]:
        """What whoever runs the network gets."""
        results = {each.result for each in self.states.values()}
        return tuple(name for name in self.outputs if name not in results)

    def title(self, node: str) -> str:
        """What messages call a node: as the model does, if it does."""
        return show_name(self.nodes[node].origin or node)

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
            kind = f"state, then {self.states[name].result}" if name in self.states else "input"
            yield printable(f"{name}: {type_} = {kind}")
        for name, node in self.nodes.items():
            yield printable(f"{name}: {node.type} = {describe_operation(node.operation)}")
        yield printable(f"output {', '.join(self.user_outputs)}")

    def __str__(self) -> str:
        return "\n".join(self.lines())


def with_nodes(graph: Graph, nodes: Mapping[str, Node],
               constants: Mapping[str, Constant] | None = None) -> Graph:
    """The graph with other nodes, and constants if given."""
    return replace(graph, nodes=nodes,
                   constants=graph.constants if constants is None else constants)
