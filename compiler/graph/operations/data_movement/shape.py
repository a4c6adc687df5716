"""Operations that move numbers and compute nothing. Scales and zero points stay."""

from __future__ import annotations

from enum import Enum
from math import prod

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, normalize_axis, operand
from ...types import Array, GraphError, TensorType


@dataclass(frozen=True, kw_only=True)
class _Moved(Operation):
    """An operation whose result stands for the same real numbers as its first operand."""

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result != expected:
            raise GraphError(f"the result is {result}, but must be {expected}")


def moved_type(x: TensorType, shape: tuple[int, ...]) -> TensorType:
    """The type of numbers that were moved into another shape."""
    if x.quantization is not None and x.quantization.axis is not None and len(
            x.quantization.scales) > 1:
        raise GraphError(f"the input is {x}, but numbers that move must share one scale")
    return TensorType(shape, x.dtype, x.quantization)


@dataclass(frozen=True, kw_only=True)
class Reshape(_Moved):
    """The same numbers in the same order, in another shape."""

    x: str = operand()
    shape: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        if prod(self.shape) != x.size:
            raise GraphError(f"shape {x.shape} cannot become {self.shape}: there are {x.size} "
                             f"elements, not {prod(self.shape)}")
        return moved_type(x, self.shape)

    def compute(self, result: TensorType, x: Value) -> Array:
        return x.array.reshape(self.shape)


@dataclass(frozen=True, kw_only=True)
class Transpose(_Moved):
    """Axes in another order: axis i of the result is axis order[i] of the input."""

    x: str = operand()
    order: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        if sorted(self.order) != list(range(len(x.shape))):
            raise GraphError(f"order is {self.order}, but must name each of {len(x.shape)} axes")
        return moved_type(x, tuple(x.shape[axis] for axis in self.order))

    def compute(self, result: TensorType, x: Value) -> Array:
        return x.array.transpose(self.order)


@dataclass(frozen=True, kw_only=True)
class Concat(_Moved):
    """Tensors one after the other along an axis; all have the same scale and zero point."""

    parts: tuple[str, ...] = operand()
    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        if not types:
            raise GraphError("there is nothing to join")
        axis = normalize_axis(self.axis, len(types[0].shape))
        first = types[0]
        for each in types:
            if (each.dtype, each.quantization, len(each.shape)) != (
                    first.dtype, first.quantization, len(first.shape)) or (
                    [*each.shape[:axis], *each.shape[axis + 1:]]
                    != [*first.shape[:axis], *first.shape[axis + 1:]]):
                raise GraphError(f"{each} cannot be joined to {first} along axis {axis}")
        size = sum(each.shape[axis] for each in types)
        return moved_type(first, (*first.shape[:axis], size, *first.shape[axis + 1:]))

    def compute(self, result: TensorType, *values: Value) -> Array:
        return np.concatenate([each.array for each in values], axis=self.axis)


@dataclass(frozen=True, kw_only=True)
class Slice(_Moved):
    """Part of a tensor: from a start to a stop, which is not included, in steps, which may be
    negative; a stop of -1 then is before the first."""

    x: str = operand()
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        if not len(self.starts) == len(self.stops) == len(self.steps) == len(x.shape):
            raise GraphError(f"starts, stops and steps must have a number for each of "
                             f"{len(x.shape)} axes")
        shape = []
        for start, stop, step, size in zip(self.starts, self.stops, self.steps, x.shape,
                                           strict=True):
            indices = range(start, stop, step) if step else range(0)
            if not step or (len(indices) and not (0 <= indices[0] < size
                                                  and 0 <= indices[-1] < size)):
                raise GraphError(f"a slice from {start} to {stop} in steps of {step} leaves an "
                                 f"axis of {size}")
            shape.append(len(indices))
        return moved_type(x, tuple(shape))

    def compute(self, result: TensorType, x: Value) -> Array:
        parts = [range(*each) for each in zip(self.starts, self.stops, self.steps, strict=True)]
        return x.array[tuple(slice(each.start, None if each.stop < 0 else each.stop, each.step)
                             if each else slice(0) for each in parts)]


class PadMode(Enum):
    """What is in a border; the names are NumPy's."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"
    EDGE = "edge"
    WRAP = "wrap"


@dataclass(frozen=True, kw_only=True)
class Pad(_Moved):
    """A border: a value, which is a stored number, or what is near."""

    x: str = operand()
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float = 0
    mode: PadMode = PadMode.CONSTANT

    def infer(self, x: TensorType) -> TensorType:
        if not len(self.before) == len(self.after) == len(x.shape) or min((
                *self.before, *self.after, 0)) < 0:
            raise GraphError(f"a border of {self.before} and {self.after} must have two numbers "
                             f"that are not negative for each of {len(x.shape)} axes")
        return moved_type(x, tuple(size + before + after for size, before, after
                                   in zip(x.shape, self.before, self.after, strict=True)))

    def compute(self, result: TensorType, x: Value) -> Array:
        widths = list(zip(self.before, self.after, strict=True))
        if not widths:
            return x.array
        if self.mode == PadMode.CONSTANT:
            return np.pad(x.array, widths, constant_values=self.value)
        return np.pad(x.array, widths, mode=self.mode.value)
