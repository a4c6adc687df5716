"""Functions of 8-bit numbers, as tables of their 256 results in the reference kernels' own
arithmetic: in fixed point, or in real numbers of 32 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .....base.errors import MicrotronError
from .....isa.arithmetic import TWICE, quantize_scale, scale_array
from ....graph.operations.pointwise.quantize import Lookup
from ....graph.operations.tflite.fixed_point import FRACTION_BITS, inverse_square_root, shift_right
from ....graph.types import Array, GraphError, Quantization
from ..operator_node import Node
from .rule_helpers import EIGHT_BITS, round_half_away

INVERSE_ROOT_BITS = 20          # bits by which inverse square roots are shifted left
HIGH_RESOLUTION = 7             # bits by which hard swish shifts its input left
SIXTEENTH_SHIFT = 15            # of 16-bit products
FURTHEST = 1 << FRACTION_BITS   # beyond any stored number
RELUISH_SCALE = np.float32(3) / np.float32(32768)


def add_table(node: Node, function: Callable[[Array], Array],
              dtypes: tuple[str, ...] = EIGHT_BITS) -> None:
    """Add a function of 8-bit numbers: from stored numbers less their zero point, to those of the
    result."""
    x, result = node.type(0), node.declared_result()
    if x.dtype not in dtypes or result.dtype != x.dtype:
        raise GraphError(f"the input is {x.plain()} and the result {result.dtype}, but both must "
                         f"be real numbers or {' or '.join(dtypes)}")
    low, high = x.range
    values = np.arange(low, high + 1, dtype=np.int64) - x.require_quantization().zero_point
    with np.errstate(all="ignore"):
        stored = function(values) + node.declared_quantization().zero_point
    table = np.clip(stored, low, high).astype(x.dtype)
    node.add(Lookup(x=node.input(0), table=node.constant("table", table, result.quantization)))


def scale_rounding_twice(values: Array, real: float) -> Array:
    """Values times a real scale, rounded twice."""
    return scale_array(values, *multiplier_of(real), TWICE).astype(np.int64)


def multiplier_of(real: float) -> tuple[int, int]:
    """The multiplier and shift of a real scale."""
    try:
        return quantize_scale(real)
    except MicrotronError as error:
        raise GraphError(str(error)) from None


def single(scale: float) -> np.float32:
    """A scale in the 32 bits of the file."""
    return np.float32(scale)


def real_function(before: Quantization, after: Quantization,
                  function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of real numbers of 32 bits."""
    def stored_results(values: Array) -> Array:
        reals = single(before.scale) * values.astype(np.float32)
        result = function(reals).astype(np.float32) * (np.float32(1) / single(after.scale))
        return round_half_away(np.nan_to_num(result.astype(np.float64), nan=-1e9, posinf=1e9,
                                             neginf=-1e9))
    return stored_results


def logistic(reals: Array) -> Array:
    """1 / (1 + exp(−x)), each step rounded to 32 bits."""
    powers = np.exp(-reals.astype(np.float64)).astype(np.float32)
    found: Array = np.float32(1) / (np.float32(1) + powers)
    return found


def hyperbolic_tangent(reals: Array) -> Array:
    return np.tanh(reals.astype(np.float64)).astype(np.float32)


def inverse_root_table(before: Quantization, after: Quantization) -> Callable[[Array], Array]:
    """1 / √x in fixed point; what is not above zero gives the largest number."""
    real = 1 / float(np.sqrt(single(before.scale)) * single(after.scale))

    def stored_results(values: Array) -> Array:
        inverse, shift = inverse_square_root(np.maximum(values, 1))
        fine = scale_array(1, inverse, FRACTION_BITS - INVERSE_ROOT_BITS + shift, TWICE)
        multiplier, right = multiplier_of(real)
        found = scale_array(fine, multiplier, right + INVERSE_ROOT_BITS, TWICE)
        return np.where(values > 0, found.astype(np.int64), FURTHEST)
    return stored_results


def leaky_table(before: Quantization, after: Quantization,
                alpha: float) -> Callable[[Array], Array]:
    """Two multipliers, each computed in 32 bits: one above zero, one below."""
    above = float(single(before.scale) / single(after.scale))
    below = float(single(before.scale) * single(alpha) / single(after.scale))
    return lambda values: np.where(values >= 0, scale_rounding_twice(values, above),
                                   scale_rounding_twice(values, below))


def sixteen_bit_multiplier(real: float) -> tuple[int, int]:
    """A multiplier of 16 bits and its exponent."""
    multiplier, shift = multiplier_of(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), FRACTION_BITS - shift


def product_16(left: Array, right: Array | int) -> Array:
    """The doubling high multiply of 16 bits: rounded, ties up."""
    whole: Array = left * right
    return saturate_16((whole + (1 << 14)) >> SIXTEENTH_SHIFT)


def hard_swish_table(before: Quantization, after: Quantization) -> Callable[[Array], Array]:
    """x × relu6(x + 3) / 6 in 16 bits: the second factor counts from −1 to 1 first."""
    fine = np.float32(1 / 128) * single(before.scale)
    multiplier, exponent = sixteen_bit_multiplier(float(fine / single(after.scale)))
    slope, slope_exponent = sixteen_bit_multiplier(float(fine / RELUISH_SCALE))
    if exponent > 0:
        raise GraphError(f"the input's scale {before.scale:.6g} is too large for the result's "
                         f"{after.scale:.6g}")

    def stored_results(values: Array) -> Array:
        high = values << HIGH_RESOLUTION
        gate = high
        if slope_exponent > 0:
            gate = saturate_16(gate << (slope_exponent - 1))
        gate = product_16(gate, slope)
        if slope_exponent > 0:
            gate = saturate_16(gate << 1)
        if slope_exponent < 0:
            gate = shift_right(gate, -slope_exponent)
        gate = (gate + (1 << 15)) >> 1
        whole = gate * product_16(high, multiplier)
        towards_zero = np.where(whole < 0, -(-whole >> SIXTEENTH_SHIFT), whole >> SIXTEENTH_SHIFT)
        return shift_right(towards_zero, -exponent)
    return stored_results


def saturate_16(values: Array) -> Array:
    return np.asarray(np.clip(values, -(1 << 15), (1 << 15) - 1))

