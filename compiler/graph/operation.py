"""What nodes compute. Each operation is one small frozen record that names its operands; it knows
the shape of its result and, in NumPy, its meaning.

    @dataclass(frozen=True, kw_only=True)
    class Reshape(Operation):
        x: str = operand()
        shape: tuple[int, ...]

Everything else follows from the fields: operands and their replacement, the listing, and the form
in which a graph is saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields, replace
from typing import Any, NamedTuple, TypeVar

from ...base.classes.dataclass import dataclass
from ...base.keywords import Declared
from .types import Array, GraphError, Shape, TensorType

Own = TypeVar("Own", bound="Operation")
OPERATIONS: dict[str, type[Operation]] = {}         # by name
OPERANDS: dict[type[Operation], tuple[str, ...]] = {}


class Value(NamedTuple):
    """A tensor with its numbers."""

    type: TensorType
    array: Array


def operand(default: object = MISSING) -> Declared:
    """A field that names a tensor. It may be None, if that is its default, or a tuple of names."""
    return field(default=default, metadata={"operand": True})


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What all operations have. Operands come in the order of fields; those that are None are
    left out."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.compute is not Operation.compute:    # else it is what several have in common
            OPERATIONS[cls.__name__] = cls

    @classmethod
    def title(cls) -> str:
        """Its name in words: "transposed conv"."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    def operands(self) -> tuple[str, ...]:
        """The names of the tensors that it reads."""
        names: list[str] = []
        for each in operand_fields(type(self)):
            value = getattr(self, each)
            names += value if isinstance(value, tuple) else () if value is None else (value,)
        return tuple(names)

    def rename_operands(self: Own, change: Callable[[str], str]) -> Own:
        """The same operation on other tensors."""
        changes: dict[str, str | tuple[str, ...]] = {}
        for each in operand_fields(type(self)):
            value = getattr(self, each)
            if value is not None:
                changes[each] = (tuple(map(change, value)) if isinstance(value, tuple)
                                 else change(value))
        return replace(self, **changes)

    def settings(self) -> dict[str, object]:
        """The fields that are no operands and differ from their defaults."""
        found = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if not each.metadata.get("operand") and value != each.default:
                found[each.name] = value
        return found

    # Operations declare their own operands, each a TensorType or a Value; **none makes mypy agree.
    def infer(self, *types: Any, **none: Any) -> TensorType:
        """The type of the result: its shape always, its numbers' type where that follows from
        those of the operands, which are in order. Refuses operands that do not fit."""
        raise NotImplementedError

    def check(self, result: TensorType, *types: TensorType) -> None:
        """Refuse a result of the wrong type. Where the type of its numbers is free, as it is for
        whatever requantizes, this is what decides about it."""
        expected = self.infer(*types)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")

    def compute(self, result: TensorType, *values: Any, **none: Any) -> Array:
        """The numbers of the result, from operands in order."""
        raise NotImplementedError


def operand_fields(kind: type[Operation]) -> tuple[str, ...]:
    """The names of the fields that are operands; looked up once."""
    if kind not in OPERANDS:
        OPERANDS[kind] = tuple(each.name for each in fields(kind) if each.metadata.get("operand"))
    return OPERANDS[kind]


def describe_operation(operation: Operation) -> str:
    """An operation with its settings, as listings show it."""
    arguments = [*operation.operands(),
                 *(f"{name}={_short(value)}" for name, value in operation.settings().items())]
    return f"{type(operation).__name__}({', '.join(arguments)})"


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 4:
        return f"({_short(value[0])}, … {len(value)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else getattr(value, "name", None) or str(value)


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < rank:
        raise GraphError(f"axis is {axis}, but must be from {-rank} to {rank - 1}")
    return axis % rank


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    found = tuple(sorted(normalize_axis(axis, rank) for axis in axes))
    if len(set(found)) != len(found):
        raise GraphError(f"axes are {tuple(axes)}, but each may be named once")
    return found


def broadcast(*shapes: Shape) -> Shape:
    """The shape of operands that are repeated to meet one another."""
    import numpy as np

    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise GraphError(f"shapes {' and '.join(map(str, shapes))} do not fit each other") from None


def same_types(types: Mapping[str, TensorType]) -> str:
    """The one type of numbers that some operands must share."""
    found = {each.dtype for each in types.values()}
    if len(found) != 1:
        raise GraphError("; ".join(f"{name} is {each.plain()}"
                                   for name, each in types.items())
                         + "; all must be of one type")
    return found.pop()
