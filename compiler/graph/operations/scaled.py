"""Operations whose sums are scaled back to few bits, and what that means to the bit.

Numbers of a result are real numbers, plain integers of 32 bits, or quantized: then a sum is
multiplied with a real scale, for each channel its own, as `isa.arithmetic` defines it.
"""

from __future__ import annotations

from math import isinf, isnan

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ....isa.arithmetic import INT32_HIGH, quantize_scale, quantize_scales, scale_array
from ....isa.instructions import Rounding
from ..operation import Operation
from ..types import Array, GraphError, TensorType

SUMS = "int32"


@dataclass(frozen=True, kw_only=True)
class Clamped(Operation):
    """Results between two bounds, which are stored numbers: integers, if the result has those."""

    low: float | None = None        # None: as low as the type goes
    high: float | None = None

    def clamp(self, values: Array, result: TensorType) -> Array:
        """Values within the bounds, and within what the result's type holds."""
        if self.low is None and self.high is None and values.dtype == np.dtype(result.dtype):
            return values
        low, high = self.bounds(result)
        if low is not None or high is not None:
            values = np.clip(values, low, high)
        return values

    def bounds(self, result: TensorType) -> tuple[float | None, float | None]:
        """The bounds of stored numbers; those of integers are integers."""
        if not result.is_integer:
            return self.low, self.high
        least, largest = result.range
        return (least if self.low is None else max(least, int(self.low)),
                largest if self.high is None else min(largest, int(self.high)))

    def check_bounds(self, result: TensorType) -> None:
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None and (isnan(bound) or (result.is_integer and isinf(bound))):
                raise GraphError(f"{name} is {bound}, but must be a number that {result.dtype} "
                                 f"can be compared with")
        low, high = self.bounds(result)
        if low is not None and high is not None and low > high:
            raise GraphError(f"low is {low}, above high, which is {high}")


@dataclass(frozen=True, kw_only=True)
class Scaled(Clamped):
    """Sums times scales. Without scales, results are the sums themselves."""

    scales: tuple[float, ...] = ()      # one for each channel of the result, or one for all
    rounding: Rounding = Rounding.TWICE

    def check_scaled(self, result: TensorType, channels: int, *factors: TensorType) -> None:
        """Refuse a result that sums of products of these cannot become."""
        self.check_bounds(result)
        if factors[0].is_float:
            right = not self.scales and all(each.dtype == result.dtype for each in factors)
            rule = "real numbers of the same type without scales"
        elif self.scales:
            right, rule = result.is_integer and result.is_quantized, "integers with a scale"
        else:
            right, rule = result.dtype == SUMS, f"{SUMS} without scales"
        if not right:
            raise GraphError(f"the result is {result}, but must be {rule}")
        if self.scales and len(self.scales) not in (1, channels):
            raise GraphError(f"there are {len(self.scales)} scales, but must be one or {channels}")
        for scale in self.scales:
            if not 0 <= scale <= INT32_HIGH:        # verified after every pass, so this is quick
                check_scale(scale)

    def scale_sums(self, sums: Array, result: TensorType) -> Array:
        """Results from sums whose channels come last."""
        if not self.scales:
            return self.clamp(sums if result.is_float else wrap_to_32_bits(sums), result)
        values = scale_array(wrap_to_32_bits(sums), *quantize_scales(self.scales), self.rounding)
        return self.clamp(values.astype(np.int64) + result.require_quantization().zero_point,
                          result)


def check_scale(scale: float) -> None:
    """Refuse what is no scale of sums."""
    try:
        quantize_scale(scale)
    except MicrotronError as error:
        raise GraphError(str(error)) from None


def wrap_to_32_bits(sums: Array) -> Array:
    """Sums as an accumulator of 32 bits has them."""
    return sums.astype(np.int64).astype(np.int32)


def subtract_zero_point(array: Array, type_: TensorType) -> Array:
    """What is multiplied: real numbers as they are, those of 16 bits with 32, as sums of them need;
    integers without their zero points. Integers become reals of 64 bits, which hold all sums of
    products exactly and are multiplied fast."""
    if type_.is_float:
        return array.astype(np.float32) if type_.dtype == "float16" else array
    values = array.astype(np.float64)
    if type_.quantization is not None:
        values -= type_.quantization.along(type_.quantization.zero_points, array.ndim)
    return values
