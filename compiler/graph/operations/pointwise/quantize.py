"""Between real numbers and the integers that stand for them, and from one scale to another."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from .....isa.arithmetic import quantize_scale, scale_array
from .....isa.instructions import Rounding
from ...operation import Operation, Value, operand
from ...types import Array, GraphError, TensorType
from ..scaled import Clamped, check_scale


@dataclass(frozen=True, kw_only=True)
class Quantize(Operation):
    """Real numbers as integers: x / scale, rounded, plus the zero point, saturated. Ties go to
    even, as ONNX has it, or away from zero, as TFLite has it."""

    x: str = operand()
    rounding: Rounding = Rounding.EVEN

    def infer(self, x: TensorType) -> TensorType:
        if not x.is_float:
            raise GraphError(f"the input is {x.plain()}, but must be real numbers")
        return TensorType(x.shape, "int8")

    def check(self, result: TensorType, *types: TensorType) -> None:
        if result.shape != self.infer(*types).shape or not result.is_quantized:
            raise GraphError(f"the result is {result}, but must be integers with a scale, of "
                             f"shape {types[0].shape}")

    def compute(self, result: TensorType, x: Value) -> Array:
        known = result.require_quantization()
        scales = known.along(known.scales, x.array.ndim).astype(x.array.dtype)
        ratio = x.array / scales
        # In 64 bits, so that nothing below one half becomes one when a half is added.
        exact = ratio.astype(np.float64)
        rounded = np.rint(exact) if self.rounding == Rounding.EVEN else (
            np.trunc(exact + np.copysign(0.5, exact)))
        zeros = known.along(known.zero_points, x.array.ndim)
        low, high = result.range
        stored: Array = np.clip(np.nan_to_num(rounded) + zeros, low, high)
        return stored


@dataclass(frozen=True, kw_only=True)
class Dequantize(Operation):
    """Integers as the real numbers that they stand for."""

    x: str = operand()

    def infer(self, x: TensorType) -> TensorType:
        if not x.is_quantized:
            raise GraphError(f"the input is {x}, but must be integers with a scale")
        return TensorType(x.shape, "float32")

    def compute(self, result: TensorType, x: Value) -> Array:
        known = x.type.require_quantization()
        zeros = known.along(known.zero_points, x.array.ndim)
        scales = known.along(known.scales, x.array.ndim).astype(np.float32)
        return (x.array.astype(np.int64) - zeros).astype(np.float32) * scales


@dataclass(frozen=True, kw_only=True)
class Rescale(Clamped):
    """Integers for another scale, zero point or type: z + scale(q1 − z1, s1 / s)."""

    x: str = operand()
    rounding: Rounding = Rounding.TWICE

    def infer(self, x: TensorType) -> TensorType:
        if not x.is_quantized:
            raise GraphError(f"the input is {x}, but must be integers with a scale")
        return TensorType(x.shape, x.dtype, x.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        self.check_bounds(result)
        if result.shape != self.infer(*types).shape or not result.is_quantized:
            raise GraphError(f"the result is {result}, but must be integers with a scale, of "
                             f"shape {types[0].shape}")
        check_scale(types[0].require_quantization().scale / result.require_quantization().scale)

    def compute(self, result: TensorType, x: Value) -> Array:
        before, after = x.type.require_quantization(), result.require_quantization()
        values = x.array.astype(np.int64) - before.zero_point
        scaled = scale_array(values, *quantize_scale(before.scale / after.scale), self.rounding)
        return self.clamp(scaled.astype(np.int64) + after.zero_point, result)


@dataclass(frozen=True, kw_only=True)
class Reinterpret(Operation):
    """The same integers, standing for other numbers: with another scale and zero point, or none."""

    x: str = operand()

    def infer(self, x: TensorType) -> TensorType:
        if not x.is_integer:
            raise GraphError(f"the input is {x}, but must be integers")
        return x.plain()

    def compute(self, result: TensorType, x: Value) -> Array:
        return x.array


@dataclass(frozen=True, kw_only=True)
class Clamp(Clamped):
    """Numbers between two bounds: ReLU, ReLU6 and clip. Of integers, bounds are stored numbers."""

    x: str = operand()

    def infer(self, x: TensorType) -> TensorType:
        return x

    def check(self, result: TensorType, *types: TensorType) -> None:
        self.check_bounds(result)
        if result != types[0]:
            raise GraphError(f"the result is {result}, but must be {types[0]}")

    def compute(self, result: TensorType, x: Value) -> Array:
        return self.clamp(x.array, result)


@dataclass(frozen=True, kw_only=True)
class Lookup(Operation):
    """Any function of 8-bit integers, as a table of its 256 results, beginning with that of the
    least integer."""

    x: str = operand()
    table: str = operand()

    def infer(self, x: TensorType, table: TensorType) -> TensorType:
        if x.dtype not in ("int8", "uint8") or table.shape != (256,):
            raise GraphError(f"the input is {x.plain()} and the table {table.plain()}, but must "
                             f"be 8-bit integers and a table of 256")
        return TensorType(x.shape, table.dtype, table.quantization)

    def compute(self, result: TensorType, x: Value, table: Value) -> Array:
        return table.array[x.array.astype(np.int64) - x.type.range[0]]
