"""Functions of one number, and numbers as another type."""

from __future__ import annotations

import numpy as np

from .....isa.instructions import Rounding
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import Compare, CompareKind, Where
from ....graph.operations.pointwise.quantize import Clamp, Dequantize, Quantize, Rescale
from ....graph.operations.pointwise.unary import FUNCTIONS, Cast, Unary, UnaryKind
from ....graph.operations.tflite.eight_bit import FixedPointPrelu
from ....graph.types import Array, GraphError
from ..operator_node import Node, reads
from .lookup_tables import (
    add_table,
    hard_swish_table,
    hyperbolic_tangent,
    inverse_root_table,
    leaky_table,
    logistic,
    real_function,
    scale_rounding_twice,
    single,
)
from .rule_helpers import EIGHT_BITS, Bounds, stored_bounds

RELUS: dict[str, Bounds] = {"RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1),
                            "RELU_0_TO_1": (0, 1)}
REAL_FUNCTIONS = {
    "ABS": UnaryKind.ABS, "NEG": UnaryKind.NEG, "SQUARE": UnaryKind.SQUARE, "SIGN": UnaryKind.SIGN,
    "SQRT": UnaryKind.SQRT, "RSQRT": UnaryKind.RSQRT, "EXP": UnaryKind.EXP, "LOG": UnaryKind.LOG,
    "SIN": UnaryKind.SIN, "COS": UnaryKind.COS, "FLOOR": UnaryKind.FLOOR, "CEIL": UnaryKind.CEIL,
    "ROUND": UnaryKind.ROUND}
SIGNED = ("int8",)              # the only 8-bit type of some kernels
TABLED = (UnaryKind.EXP, UnaryKind.LOG)


@reads(*RELUS)
def relu(node: Node) -> None:
    """Bounds, and another scale if the result has one."""
    x, result = node.type(0), node.declared_result()
    bounds = stored_bounds(result, RELUS[node.operator.name])
    if x.quantization == result.quantization:
        node.add(Clamp(x=node.input(0), **bounds))
        return
    before, after = x.require_quantization(), node.declared_quantization()
    real = float(single(before.scale) / single(after.scale))
    low, high = x.range
    low, high = (max(low, bounds.get("low", low)), min(high, bounds.get("high", high)))

    def clamp(values: Array) -> Array:
        zero = after.zero_point
        return np.asarray(np.clip(scale_rounding_twice(values, real) + zero, low, high) - zero)

    # TFLite divides the scales in 32 bits; mostly no result differs from what 64 bits give.
    values = np.arange(256) + x.range[0] - before.zero_point
    if x.dtype in ("int8", "uint8") and x.dtype == result.dtype and np.array_equal(
            scale_rounding_twice(values, real),
            scale_rounding_twice(values, before.scale / after.scale)):
        node.add(Rescale(x=node.input(0), **bounds))
    else:
        add_table(node, clamp)


@reads(*REAL_FUNCTIONS)
def function(node: Node) -> None:
    """Few of them have a kernel for 8-bit numbers."""
    kind, x = REAL_FUNCTIONS[node.operator.name], node.type(0)
    if kind == UnaryKind.ABS and x.is_quantized:
        real = single(x.require_quantization().scale) / single(node.declared_quantization().scale)
        add_table(node, lambda values: scale_rounding_twice(np.abs(values), float(real)), SIGNED)
    elif kind == UnaryKind.RSQRT and x.is_quantized:
        add_table(node, inverse_root_table(x.require_quantization(), node.declared_quantization()),
                  SIGNED)
    else:
        translate_real_function(node, kind, SIGNED if kind in TABLED else ())


def translate_real_function(node: Node, kind: UnaryKind, tables: tuple[str, ...],
                            alpha: float = 0) -> None:
    """A function of real numbers or, for some types, the table of one."""
    x = node.type(0)
    if x.is_quantized and tables:
        function = FUNCTIONS[kind]
        add_table(node, real_function(x.require_quantization(), node.declared_quantization(),
                                      lambda reals: function(reals, alpha, 0)), tables)
    else:
        node.add(Unary(kind=kind, x=node.input(0), alpha=alpha))


@reads("LOGISTIC", "TANH")
def sigmoid(node: Node) -> None:
    """The results of quantized ones have a scale of their own: 1/256 and 1/128."""
    kind = UnaryKind.SIGMOID if node.operator.name == "LOGISTIC" else UnaryKind.TANH
    x = node.type(0)
    if not x.is_quantized:
        node.add(Unary(kind=kind, x=node.input(0)))
        return
    low = -x.range[0]
    after = node.declared_quantization()
    right = (1 / 256, -low) if kind == UnaryKind.SIGMOID else (1 / 128, 128 - low)
    if (after.scale, after.zero_point) != right:
        raise GraphError(f"the result has scale {after.scale:.6g} and zero point "
                         f"{after.zero_point}, but must have {right[0]:.6g} and {right[1]}")
    function = logistic if kind == UnaryKind.SIGMOID else hyperbolic_tangent
    add_table(node, real_function(x.require_quantization(), after, function))


@reads("HARD_SWISH")
def hard_swish(node: Node) -> None:
    x = node.type(0)
    if x.is_quantized:
        add_table(node, hard_swish_table(x.require_quantization(), node.declared_quantization()))
    else:
        node.add(Unary(kind=UnaryKind.HARD_SWISH, x=node.input(0)))


@reads("LEAKY_RELU", options="LeakyReluOptions")
def leaky_relu(node: Node) -> None:
    x, alpha = node.type(0), float(node.option("Alpha"))
    if x.is_quantized:
        add_table(node, leaky_table(x.require_quantization(), node.declared_quantization(), alpha))
    else:
        node.add(Unary(kind=UnaryKind.LEAKY_RELU, x=node.input(0), alpha=alpha))


@reads("ELU")
def elu(node: Node) -> None:
    translate_real_function(node, UnaryKind.ELU, SIGNED, alpha=1)


@reads("GELU", options="GeluOptions")
def gelu(node: Node) -> None:
    kind = UnaryKind.GELU_TANH if node.option("Approximate") else UnaryKind.GELU
    translate_real_function(node, kind, EIGHT_BITS)


@reads("PRELU", inputs=2)
def prelu(node: Node) -> None:
    """Below zero, numbers are multiplied with those of another tensor."""
    x, slopes = node.input(0), node.input(1)
    if node.type(0).is_quantized:
        node.add(FixedPointPrelu(x=x, slopes=slopes))
        return
    zero = node.constant("zero", np.zeros((1,) * len(node.type(0).shape), node.type(0).dtype))
    below = node.step("below", Binary(kind=BinaryKind.MUL, left=x, right=slopes))
    negative = node.step("negative", Compare(kind=CompareKind.LESS, left=x, right=zero))
    node.add(Where(condition=negative, left=below, right=x))


@reads("QUANTIZE")
def quantize(node: Node) -> None:
    """Of real numbers, or of integers with another scale."""
    if node.type(0).is_float:
        node.add(Quantize(x=node.input(0), rounding=Rounding.AWAY))
    else:
        node.add(Rescale(x=node.input(0)))


@reads("DEQUANTIZE")
def dequantize(node: Node) -> None:
    """Weights of 16-bit real numbers became 32-bit ones when they were read."""
    if node.tensor(0).dtype == "float16":
        node.give_existing(node.input(0))
    else:
        node.add(Dequantize(x=node.input(0)))


@reads("CAST")
def cast(node: Node) -> None:
    node.add(Cast(x=node.input(0), dtype=node.declared_result().dtype))
