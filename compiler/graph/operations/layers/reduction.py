"""Many numbers as one: sums, averages, the largest, and where that is."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, normalize_axes, normalize_axis, operand
from ...types import Array, GraphError, Shape, TensorType
from ..scaled import Scaled


class ReduceKind(Enum):
    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


def _mean(numbers: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """NumPy's, without its warning about a mean of nothing, which is no number."""
    count = prod(numbers.shape[each] for each in axis)
    with np.errstate(invalid="ignore"):
        mean: Array = numbers.sum(axis=axis, keepdims=keepdims) / count
    return mean


FUNCTIONS: dict[ReduceKind, Callable[..., Array]] = {
    ReduceKind.SUM: np.sum, ReduceKind.MEAN: _mean, ReduceKind.MAX: np.max,
    ReduceKind.MIN: np.min, ReduceKind.PROD: np.prod}
ORDER = (ReduceKind.MAX, ReduceKind.MIN)


def reduced_shape(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    """A shape without some axes, or with those of one index."""
    gone = normalize_axes(axes, len(shape))
    return tuple(1 if axis in gone else size for axis, size in enumerate(shape)
                 if keep or axis not in gone)


@dataclass(frozen=True, kw_only=True)
class Reduce(Scaled):
    """One number for all those along some axes. The largest and the least of quantized tensors are
    stored numbers; of truth values they mean any and all. Of nothing, they are the least and the
    largest number that there is, and a mean is none. Sums and products of plain integers wrap,
    unless there are bounds. A quantized sum or mean is

        y = z + scale(sum of (q − z1), real), where `scales` has the one `real`

    which for a mean has the number of elements in it.
    """

    kind: ReduceKind
    x: str = operand()
    axes: tuple[int, ...]
    keep: bool = False          # axes of one index where numbers were

    def infer(self, x: TensorType) -> TensorType:
        shape = reduced_shape(x.shape, self.axes, self.keep)
        if x.dtype == "bool" and self.kind not in ORDER:
            raise GraphError(f"the input is {x}, but must be numbers")
        if self.kind == ReduceKind.MEAN and not x.is_float and any(
                x.shape[axis] == 0 for axis in self.axes):
            raise GraphError(f"nothing of {x.shape} is left along {self.axes} to take a "
                             f"{self.kind.value} of")
        return TensorType(shape, x.dtype, x.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        self.check_bounds(result)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")
        quantized = types[0].is_quantized
        if quantized and self.kind not in ORDER:
            if self.kind == ReduceKind.PROD or not result.is_quantized or len(self.scales) != 1:
                raise GraphError("only sums and means of quantized tensors are quantized, with "
                                 "one scale")
        elif self.scales or result.quantization != expected.quantization:
            raise GraphError(f"the result is {result}, but must be {expected}, without scales")

    def compute(self, result: TensorType, x: Value) -> Array:
        axes = normalize_axes(self.axes, x.array.ndim)
        function = FUNCTIONS[self.kind]
        if self.scales:
            zeroless = x.array.astype(np.int64) - x.type.require_quantization().zero_point
            return self.scale_sums(zeroless.sum(axis=axes, keepdims=self.keep)[..., None],
                                   result)[..., 0]
        if self.kind in ORDER:
            return self.clamp(function(x.array, axis=axes, keepdims=self.keep,
                                       initial=self.identity(x.type)), result)
        if self.kind == ReduceKind.MEAN and not x.type.is_float:
            mean = _mean(x.array.astype(np.float64), axes, self.keep)
            return self.clamp(np.trunc(mean), result)
        wide = x.array if x.array.dtype == np.uint64 else (
            x.array.astype(np.float64 if x.type.is_float else np.int64))
        found = function(wide, axis=axes, keepdims=self.keep)
        return found.astype(result.dtype) if self.wraps(x.type) else self.clamp(found, result)

    def wraps(self, x: TensorType) -> bool:
        """Whether a sum or product that its type does not hold is what remains of it there."""
        return x.is_integer and not self.scales and self.kind in (
            ReduceKind.SUM, ReduceKind.PROD) and self.low is None and self.high is None

    def identity(self, x: TensorType) -> float:
        """What a maximum or a minimum of nothing is."""
        lowest = self.kind == ReduceKind.MAX
        if x.is_float:
            return -np.inf if lowest else np.inf
        if not x.is_integer:
            return not lowest
        return x.range[not lowest]


@dataclass(frozen=True, kw_only=True)
class Arg(Operation):
    """Where the largest number along an axis is, or the least: the first of equal ones, or the
    last. Indices are int64 or int32."""

    kind: ReduceKind
    x: str = operand()
    axis: int
    keep: bool = False
    last: bool = False

    def infer(self, x: TensorType) -> TensorType:
        if self.kind not in ORDER:
            raise GraphError(f"there is no place of a {self.kind.value}")
        axis = normalize_axis(self.axis, len(x.shape))
        if x.shape[axis] == 0:
            raise GraphError(f"axis {axis} of {x.shape} is empty")
        return TensorType(reduced_shape(x.shape, (axis,), self.keep), "int64")

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result.shape != expected.shape or result.is_quantized or (
                result.dtype not in ("int32", "int64")):
            raise GraphError(f"the result is {result}, but must be int32 or int64 of shape "
                             f"{expected.shape}")

    def compute(self, result: TensorType, x: Value) -> Array:
        function = np.argmax if self.kind == ReduceKind.MAX else np.argmin
        if not self.last:
            return np.asarray(function(x.array, axis=self.axis, keepdims=self.keep))
        backwards = function(np.flip(x.array, self.axis), axis=self.axis, keepdims=self.keep)
        return np.asarray(x.array.shape[self.axis] - 1 - backwards)
