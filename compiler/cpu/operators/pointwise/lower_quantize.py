"""Between real numbers and the integers that stand for them, and from one scale to another."""

from __future__ import annotations

import numpy as np

from .....isa.instructions import Rounding
from ....expression.expression import Expression, as_expression, select
from ....expression.functions import copy_sign, round_half_even, truncate
from ....expression.tensor import Tensor
from ....graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Reinterpret,
    Rescale,
)
from ....graph.types import Quantization, TensorType
from ...registry import Operand, lowers
from ...setting import setting
from ..lowering import (
    Axes,
    at,
    clamp_result,
    each,
    is_nan,
    round_half_away,
    saturate,
    table,
    working,
)
from ..rescaling import NARROW, WIDE, scale_and_round, store_result


@lowers(Quantize)
def quantize(operation: Quantize, result: TensorType, x: Operand) -> Tensor:
    known, dtype = result.require_quantization(), x.type.dtype
    wide = result.dtype not in NARROW or dtype != "float32"

    def element(i: Axes) -> Expression:
        # A quotient of halves is computed in 32 bits and rounded to 16, as NumPy's are.
        scale = _along(known, "scales", np.asarray(known.scales).astype(dtype), i)
        ratio = (at(x, i).cast(working(dtype)) / scale.cast(working(dtype))).cast(dtype)
        exact = ratio.cast("float64") if wide else ratio
        whole = _round(operation.rounding, exact)
        zero = _along(known, "zero_points", np.asarray(known.zero_points, exact.dtype), i)
        return saturate(select(is_nan(whole), 0, whole) + zero, result.dtype)

    return each(operation, result, element)


def _round(rounding: Rounding, exact: Expression) -> Expression:
    if rounding == Rounding.EVEN:
        return round_half_even(exact)
    if exact.dtype == "float32":
        return round_half_away(exact)
    return truncate(exact + copy_sign(as_expression(0.5, exact.dtype), exact))


def _along(known: Quantization, name: str, values: np.ndarray, axes: Axes) -> Expression:
    """The number of the axis that scales belong to."""
    if len(values) == 1:
        return setting(name, values[0].item(), values.dtype.name)
    assert known.axis is not None
    return table(name, values, axes[known.axis % len(axes)])


@lowers(Dequantize)
def dequantize(operation: Dequantize, result: TensorType, x: Operand) -> Tensor:
    known = x.type.require_quantization()
    wide = "int32" if x.type.dtype in NARROW else WIDE

    def element(i: Axes) -> Expression:
        zero = _along(known, "zero_points", np.asarray(known.zero_points, wide), i)
        scale = _along(known, "scales", np.asarray(known.scales).astype(np.float32), i)
        return ((at(x, i).cast(wide) - zero).cast("float32") * scale).cast(result.dtype)

    return each(operation, result, element)


@lowers(Rescale)
def rescale(operation: Rescale, result: TensorType, x: Operand) -> Tensor:
    before, after = x.type.require_quantization(), result.require_quantization()

    def element(i: Axes) -> Expression:
        wide = "int32" if x.type.dtype in NARROW else WIDE
        value = at(x, i).cast(wide) - setting("zero", before.zero_point, wide)
        if before.scale == after.scale and {x.type.dtype, result.dtype} <= {*NARROW}:
            # times one: only the zero point changes
            return store_result(operation, result, value)
        return store_result(operation, result, scale_and_round(value, [before.scale / after.scale],
                                                               operation.rounding))

    return each(operation, result, element)


@lowers(Reinterpret)
def reinterpret(operation: Reinterpret, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: at(x, i))


@lowers(Clamp)
def clamp(operation: Clamp, result: TensorType, x: Operand) -> Tensor:
    return each(operation, result, lambda i: clamp_result(
        operation, result, at(x, i).cast(working(x.type.dtype))))


@lowers(Lookup)
def lookup(operation: Lookup, result: TensorType, x: Operand, table: Operand) -> Tensor:
    least = x.type.range[0]
    return each(operation, result, lambda i: table.tensor[at(x, i).cast("index") - least])
