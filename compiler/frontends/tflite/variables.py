"""Variables of a TFLite file: what they hold first, and what becomes of them in an inference.

    CALL_ONCE ──► a subgraph that assigns what variables hold first, computed while reading
    READ_VARIABLE ──► what was assigned last in this inference; before that, a state of the graph
    ASSIGN_VARIABLE ──► what the next READ_VARIABLE reads, in this inference or the next one

A variable that the network reads but never assigns is a constant.
"""

from __future__ import annotations

from dataclasses import field

from ....base.checked_values import show_name
from ....base.classes.dataclass import dataclass
from ...graph.builder import Builder
from ...graph.graph import Constant, State
from ...graph.operations.data_movement.shape import Reshape
from ...graph.operations.pointwise.quantize import Reinterpret
from ...graph.types import GraphError, TensorType

Key = tuple[bytes, bytes]       # container and shared name: what makes two handles one variable


@dataclass
class Variables:
    """All variables of a file while one of its subgraphs is read."""

    initial: dict[Key, Constant] = field(default_factory=dict)
    current: dict[Key, str] = field(default_factory=dict)   # tensors that hold them by now
    handles: dict[int, Key] = field(default_factory=dict)   # tensors of the file
    assigned: frozenset[Key] = frozenset()                  # by the network, sooner or later
    states: dict[Key, str] = field(default_factory=dict)    # names of inputs

    def key_of(self, index: int, title: str) -> Key:
        """The variable that a handle stands for."""
        if index not in self.handles:
            raise GraphError(f"{title} is no handle of a variable; VAR_HANDLE gives one")
        return self.handles[index]

    def read(self, key: Key, builder: Builder, name: str) -> str:
        """The tensor that a variable is now. `name` is for a new input or constant."""
        if key in self.current:
            return self.current[key]
        if key not in self.initial:
            raise GraphError(f"the variable {title_of(key)} is read before anything is assigned "
                             f"to it")
        initial = self.initial[key]
        if key in self.assigned:
            self.current[key] = self.states[key] = builder.input(name, initial.type)
        else:
            self.current[key] = builder.constant(name, initial.array, initial.type.quantization)
        return self.current[key]

    def assign(self, key: Key, value: str, builder: Builder, name: str) -> None:
        """Have a variable hold another tensor. Stored numbers are copied, whatever they stand for:
        `name` is for a tensor that stands for what the variable does."""
        known, type_ = self.initial.get(key), builder.type_of(value)
        if known is not None:
            if (known.type.shape, known.type.dtype) != (type_.shape, type_.dtype):
                raise GraphError(f"the variable {title_of(key)} is {known.type.plain()}, but "
                                 f"{type_.plain()} is assigned to it")
            value = reinterpret(builder, value, known.type, name)
        self.current[key] = value

    def finish(self, builder: Builder, outputs: tuple[str, ...]) -> None:
        """Declare the states of a graph whose nodes are complete. The result of a state is a node
        that is nothing else."""
        taken = set(outputs)
        for key, name in self.states.items():
            result = self.current[key]
            if result not in builder.nodes or result in taken:
                shape = builder.type_of(result).shape
                result = builder.add(builder.fresh(f"{name}.next"), Reshape(x=result, shape=shape))
            taken.add(result)
            builder.states[name] = State(result, self.initial[key].array)


def reinterpret(builder: Builder, tensor: str, type_: TensorType, name: str) -> str:
    """The same stored numbers with another type's scale, if that differs."""
    if builder.type_of(tensor).quantization == type_.quantization:
        return tensor
    return builder.add(name, Reinterpret(x=tensor), dtype=type_.dtype,
                       quantization=type_.quantization)


def name_of(key: Key) -> str:
    """What the graph calls the state of a variable."""
    text = key[1].decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "�" for each in text) or "variable"


def title_of(key: Key) -> str:
    """What messages call a variable."""
    return show_name(name_of(key))
