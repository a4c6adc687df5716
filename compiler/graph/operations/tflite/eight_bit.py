"""Operations on 8-bit numbers that are to the bit as TFLite's reference kernels compute them, and
that no other framework computes in the same way."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from .....isa.arithmetic import INT32_HIGH, TWICE, quantize_scale, scale_array
from ...operation import Operation, Value, broadcast, operand
from ...types import Array, GraphError, TensorType
from ..layers.reduction import reduced_shape
from ..scaled import check_scale, wrap_to_32_bits
from ..vision.resize import Coordinates

SQUARE_HEADROOM = 7                 # bits by which the terms of a squared difference are shifted
UNIT = 1 << 10                      # what weights of a resize count
RESIZES = (Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS, Coordinates.ASYMMETRIC)


@dataclass(frozen=True, kw_only=True)
class FixedPointReduce(Operation):
    """z + scale(sum of (q − z1)) along some axes, of 8-bit numbers. TFLite divides the multiplier
    of a mean by the number of elements, so that it has fewer bits than a scale would give it."""

    x: str = operand()
    axes: tuple[int, ...]
    keep: bool = False
    multiplier: int
    shift: int

    def infer(self, x: TensorType) -> TensorType:
        if x.dtype not in ("int8", "uint8") or not x.is_quantized:
            raise GraphError(f"the input is {x}, but must be 8-bit numbers with a scale")
        if not (0 <= self.multiplier <= INT32_HIGH and 0 <= self.shift < 64):
            raise GraphError(f"the multiplier is {self.multiplier} and the shift {self.shift}, "
                             f"but must be up to {INT32_HIGH} and 63")
        return TensorType(reduced_shape(x.shape, self.axes, self.keep), x.dtype)

    def check(self, result: TensorType, *types: TensorType) -> None:
        super().check(result, *types)
        result.require_quantization()

    def compute(self, result: TensorType, x: Value) -> Array:
        zeroless = x.array.astype(np.int64) - x.type.require_quantization().zero_point
        sums = zeroless.sum(axis=self.axes, keepdims=self.keep)
        values = scale_array(wrap_to_32_bits(sums), self.multiplier, self.shift,
                             TWICE).astype(np.int64)
        return np.asarray(np.clip(values + result.require_quantization().zero_point, *result.range))


@dataclass(frozen=True, kw_only=True)
class FixedPointPrelu(Operation):
    """x, or below zero x times the slope at its place, of 8-bit numbers."""

    x: str = operand()
    slopes: str = operand()

    def infer(self, x: TensorType, slopes: TensorType) -> TensorType:
        if x.dtype not in ("int8", "uint8") or slopes.dtype != x.dtype:
            raise GraphError(f"the input is {x} and slopes are {slopes}, but both must be 8-bit "
                             f"numbers of one type")
        return TensorType(broadcast(x.shape, slopes.shape), x.dtype)

    def check(self, result: TensorType, *types: TensorType) -> None:
        super().check(result, *types)
        for scale in self.scales(result, *types):
            check_scale(scale)

    def scales(self, result: TensorType, x: TensorType,
               slopes: TensorType) -> tuple[float, float]:
        """Above and below zero; TFLite computes both in 32 bits."""
        one, other, after = (np.float32(each.require_quantization().scale)
                             for each in (x, slopes, result))
        return float(one / after), float(one * other / after)

    def compute(self, result: TensorType, x: Value, slopes: Value) -> Array:
        values, factors = (each.array.astype(np.int64) - each.type.require_quantization().zero_point
                           for each in (x, slopes))
        above, below = (scale_array(each, *quantize_scale(scale), TWICE).astype(np.int64)
                        for each, scale in zip((values, values * factors),
                                               self.scales(result, x.type, slopes.type),
                                               strict=True))
        found = np.where(values >= 0, above, below) + result.require_quantization().zero_point
        return np.asarray(np.clip(found, *result.range))


@dataclass(frozen=True, kw_only=True)
class FixedPointSquaredDifference(Operation):
    """(left − right)² of 8-bit numbers:

        a, b = scale((q − z) × 2^7, s / t) each, with t = 2 × max(s1, s2)
        y = z + scale((a − b)², t² / (2^14 × s))
    """

    left: str = operand()
    right: str = operand()

    def infer(self, left: TensorType, right: TensorType) -> TensorType:
        if left.dtype not in ("int8", "uint8") or right.dtype != left.dtype:
            raise GraphError(f"operands are {left} and {right}, but must be 8-bit numbers of one "
                             f"type")
        return TensorType(broadcast(left.shape, right.shape), left.dtype)

    def check(self, result: TensorType, *types: TensorType) -> None:
        super().check(result, *types)
        check_scale(self.scale(result, *types))

    def scale(self, result: TensorType, left: TensorType, right: TensorType) -> float:
        """Of the square."""
        double = 2 * max(left.require_quantization().scale, right.require_quantization().scale)
        return double * double / ((1 << 2 * SQUARE_HEADROOM) * result.require_quantization().scale)

    def compute(self, result: TensorType, left: Value, right: Value) -> Array:
        double = 2 * max(left.type.require_quantization().scale,
                         right.type.require_quantization().scale)
        terms = [scale_array(
            (each.array.astype(np.int64) -
             each.type.require_quantization().zero_point) << SQUARE_HEADROOM,
            *quantize_scale(each.type.require_quantization().scale / double),
            TWICE).astype(np.int64)
            for each in (left, right)]
        real = self.scale(result, left.type, right.type)
        square = scale_array((terms[0] - terms[1]) ** 2, *quantize_scale(real), TWICE)
        stored = square.astype(np.int64) + result.require_quantization().zero_point
        return np.asarray(np.clip(stored, *result.range))


@dataclass(frozen=True, kw_only=True)
class FixedPointResize(Operation):
    """Images (n, y, x, channel) of integers in another size: averages of the four pixels around.
    Weights of signed ones count 1024ths; those of unsigned ones are real numbers of 32 bits."""

    x: str = operand()
    sides: tuple[int, int]
    coordinates: Coordinates

    def infer(self, x: TensorType) -> TensorType:
        if len(x.shape) != 4 or not x.is_integer or 0 in x.shape or min(self.sides) < 1:
            raise GraphError(f"the input is {x} and becomes {self.sides}, but must be images of "
                             f"integers")
        if self.coordinates not in RESIZES:
            raise GraphError(f"coordinates are {self.coordinates.value}, but must be one of "
                             f"{', '.join(each.value for each in RESIZES)}")
        return TensorType((x.shape[0], *self.sides, x.shape[3]), x.dtype, x.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        if result != self.infer(*types):
            raise GraphError(f"the result is {result}, but must be {self.infer(*types)}")

    def compute(self, result: TensorType, x: Value) -> Array:
        if x.type.dtype == "uint8":
            return self._resize_in_reals(x.array)
        values = x.array.astype(np.int64)
        total = np.zeros(result.shape, np.int64)
        (top, bottom, down), (left, right, across) = (
            self.places(size, side) for size, side in zip(x.array.shape[1:3], self.sides,
                                                          strict=True))
        for rows, row_weights in ((top, UNIT - down), (bottom, down)):
            for columns, column_weights in ((left, UNIT - across), (right, across)):
                weights = row_weights[:, None, None] * column_weights[:, None]
                total += values[:, rows][:, :, columns] * weights
        half = np.where(total > 0, UNIT * UNIT // 2, -UNIT * UNIT // 2)
        found = total + half
        return np.where(found < 0, -(-found // (UNIT * UNIT)), found // (UNIT * UNIT))

    def places(self, size: int, side: int) -> tuple[Array, Array, Array]:
        """For each index of the result, the two that are around it and the second one's weight."""
        index = np.arange(side, dtype=np.int64)
        step = (UNIT * size + side // 2) // side
        if self.coordinates == Coordinates.ALIGN_CORNERS and side > 1:
            step = (UNIT * (size - 1) + (side - 1) // 2) // (side - 1)
        place = index * step
        if self.coordinates == Coordinates.HALF_PIXEL:
            place = place + step // 2 - UNIT // 2
        # C's division goes towards zero; negative places belong to the first pixel either way.
        lower = np.maximum(place // UNIT, 0)
        upper = np.minimum(np.maximum((place + UNIT - 1) // UNIT, 0), size - 1)
        return np.minimum(lower, size - 1), upper, place - UNIT * lower

    def _resize_in_reals(self, images: Array) -> Array:
        """Averages of unsigned numbers, rounded up at a half. Near a half TFLite's result depends
        on whether its compiler fused products and sums, so that it may be one less or more."""
        (top, bottom, down), (left, right, across) = (
            self.real_places(size, side) for size, side in zip(images.shape[1:3], self.sides,
                                                               strict=True))
        values, one = images.astype(np.float32), np.float32(1)
        total: Array = np.zeros(1, np.float32)
        for columns, across_weight in ((left, one - across), (right, across)):
            for rows, down_weight in ((top, one - down), (bottom, down)):
                pixels = values[:, rows][:, :, columns]
                total = total + pixels * down_weight[:, None, None] * across_weight[:, None]
        return np.asarray(np.floor(total + np.float32(0.5)))

    def real_places(self, size: int, side: int) -> tuple[Array, Array, Array]:
        """As `places`, in real numbers of 32 bits."""
        aligned = self.coordinates == Coordinates.ALIGN_CORNERS and side > 1
        half = np.float32(0.5 if self.coordinates == Coordinates.HALF_PIXEL else 0)
        step = np.float32(size - aligned) / np.float32(side - aligned)
        place = (np.arange(side, dtype=np.float32) + half) * step - half
        lower = np.clip(np.floor(place), 0, size - 1).astype(np.int64)
        upper = np.clip(np.ceil(place), 0, size - 1).astype(np.int64)
        return lower, upper, place - lower.astype(np.float32)
