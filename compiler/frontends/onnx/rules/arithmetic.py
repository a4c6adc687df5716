"""Operators on numbers one by one: sums, functions, comparisons and choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from ....graph.operations.pointwise.quantize import Clamp
from ....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from ....graph.types import GraphError
from ..call import Call
from ..onnx_file import dtype_of
from ..operator_table import MICROSOFT, operator

BINARY = {"Add": BinaryKind.ADD, "Sub": BinaryKind.SUB, "Mul": BinaryKind.MUL,
          "Div": BinaryKind.DIV, "Pow": BinaryKind.POW, "Sum": BinaryKind.ADD,
          "Max": BinaryKind.MAX, "Min": BinaryKind.MIN, "Mean": BinaryKind.ADD}
UNARY = {"Abs": UnaryKind.ABS, "Neg": UnaryKind.NEG, "Sign": UnaryKind.SIGN, "Exp": UnaryKind.EXP,
         "Log": UnaryKind.LOG, "Sqrt": UnaryKind.SQRT, "Reciprocal": UnaryKind.RECIPROCAL,
         "Sin": UnaryKind.SIN, "Cos": UnaryKind.COS, "Tan": UnaryKind.TAN, "Asin": UnaryKind.ASIN,
         "Acos": UnaryKind.ACOS, "Atan": UnaryKind.ATAN, "Sinh": UnaryKind.SINH,
         "Cosh": UnaryKind.COSH, "Asinh": UnaryKind.ASINH, "Acosh": UnaryKind.ACOSH,
         "Atanh": UnaryKind.ATANH, "Tanh": UnaryKind.TANH, "Erf": UnaryKind.ERF,
         "Sigmoid": UnaryKind.SIGMOID, "Softplus": UnaryKind.SOFTPLUS,
         "Softsign": UnaryKind.SOFTSIGN, "Floor": UnaryKind.FLOOR, "Ceil": UnaryKind.CEIL,
         "Round": UnaryKind.ROUND, "HardSwish": UnaryKind.HARD_SWISH, "Mish": UnaryKind.MISH}
# Their default parameters, as they are written in the specification.
WITH_ALPHA = {"Elu": (UnaryKind.ELU, 1.0), "Celu": (UnaryKind.CELU, 1.0),
              "LeakyRelu": (UnaryKind.LEAKY_RELU, 0.01),
              "ThresholdedRelu": (UnaryKind.THRESHOLDED_RELU, 1.0),
              "Swish": (UnaryKind.SWISH, 1.0)}
COMPARED = {"Equal": CompareKind.EQUAL, "Less": CompareKind.LESS, "Greater": CompareKind.GREATER,
            "LessOrEqual": CompareKind.LESS_EQUAL, "GreaterOrEqual": CompareKind.GREATER_EQUAL}
JOINED = {"And": LogicKind.AND, "Or": LogicKind.OR, "Xor": LogicKind.XOR}


@operator("Add Sub Mul Div", since=7)
def binary(call: Call) -> None:
    call.give(Binary(kind=BINARY[call.node.op_type], left=call.plain_operand(0),
                     right=call.plain_operand(1)))


@operator("Pow", since=7)
def power(call: Call) -> None:
    left, right = call.plain_operand(0), call.plain_operand(1)
    exponent = call.known_values(1)
    if exponent is not None and exponent.size == 1 and exponent.ravel()[0] == 2:
        call.give(Unary(kind=UnaryKind.SQUARE, x=left))
    elif exponent is not None and exponent.size == 1 and exponent.ravel()[0] == 0.5:
        call.give(Unary(kind=UnaryKind.SQRT, x=left))
    elif call.type_of(right).is_float and not call.type_of(left).is_float:
        wide = Binary(kind=BinaryKind.POW, left=call.cast(left, "float64"),
                      right=call.cast(right, "float64"))
        call.give(Cast(x=call.add(wide), dtype=call.type_of(left).dtype))
    else:
        call.give(Binary(kind=BinaryKind.POW, left=left,
                         right=call.cast(right, call.type_of(left).dtype)))


@operator("Sum Max Min Mean", since=8)
def several(call: Call) -> None:
    kind = BINARY[call.node.op_type]
    total, steps = call.plain_operand(0), [Binary(kind=kind, left="",
                                                  right=call.plain_operand(each))
                                           for each in range(1, len(call))]
    if call.node.op_type == "Mean":
        count = call.scalar(len(call), call.type_of(total).dtype)
        steps.append(Binary(kind=BinaryKind.DIV, left="", right=count))
    if not steps:
        call.give_existing(total)
        return
    for step in steps[:-1]:
        total = call.add(replace(step, left=total))
    call.give(replace(steps[-1], left=total))


@operator("Mod", "fmod")
def remainder(call: Call) -> None:
    kind = BinaryKind.FMOD if call.flag("fmod") else BinaryKind.MOD
    call.give(Binary(kind=kind, left=call.plain_operand(0), right=call.plain_operand(1)))


@operator(" ".join(UNARY))
def unary(call: Call) -> None:
    call.give(Unary(kind=UNARY[call.node.op_type], x=call.plain_operand(0)))


@operator(" ".join(WITH_ALPHA), "alpha")
def with_alpha(call: Call) -> None:
    kind, default = WITH_ALPHA[call.node.op_type]
    alpha = call.real("alpha", default)
    if kind == UnaryKind.CELU and alpha == 0:
        raise GraphError("alpha is 0, but must not be")
    call.give(Unary(kind=kind, x=call.plain_operand(0), alpha=alpha))


@operator("Selu", "alpha gamma")
def selu(call: Call) -> None:
    call.give(Unary(kind=UnaryKind.SELU, x=call.plain_operand(0),
                    alpha=call.real("alpha", 1.67326319217681884765625),
                    beta=call.real("gamma", 1.05070102214813232421875)))


@operator("HardSigmoid", "alpha beta")
def hard_sigmoid(call: Call) -> None:
    call.give(Unary(kind=UnaryKind.HARD_SIGMOID, x=call.plain_operand(0),
                    alpha=call.real("alpha", float(np.float32(0.2))), beta=call.real("beta", 0.5)))


@operator("Gelu", "approximate")
def gelu(call: Call) -> None:
    kind = UnaryKind.GELU_TANH if call.text("approximate", "none", "none tanh") == "tanh" else (
        UnaryKind.GELU)
    call.give(Unary(kind=kind, x=call.plain_operand(0)))


@operator("Gelu", domain=MICROSOFT)
def exact_gelu(call: Call) -> None:
    call.give(Unary(kind=UnaryKind.GELU, x=call.plain_operand(0)))


@operator("QuickGelu", "alpha", domain=MICROSOFT)
def quick_gelu(call: Call) -> None:
    call.give(Unary(kind=UnaryKind.SWISH, x=call.plain_operand(0),
                    alpha=call.real("alpha", float(np.float32(1.702)))))


@operator("Relu")
def relu(call: Call) -> None:
    call.give(Clamp(x=call.plain_operand(0), low=0))


@operator("Clip", "min max")
def clip(call: Call) -> None:
    x = call.plain_operand(0)
    bounds: list[float | None] = []
    for each, word in ((1, "min"), (2, "max")):
        known = call.known_values(each) if call.has(each) else None
        if call.has(each) and known is None:
            kind = BinaryKind.MAX if word == "min" else BinaryKind.MIN
            x = call.add(Binary(kind=kind, left=x, right=call.plain_operand(each)))
        elif call.has(each):
            bounds.append(call.number(each, word))
            continue
        bounds.append(call.real(word, 0) if word in call.attributes else None)
    low, high = bounds
    if low is not None and high is not None and low > high:
        low = high              # as the specification has it
    call.give(Clamp(x=x, low=low, high=high))


@operator("PRelu", since=7)
def prelu(call: Call) -> None:
    x, slope = call.plain_operand(0), call.plain_operand(1)
    zero = call.scalar(0, call.type_of(x).dtype)
    below = call.add(Compare(kind=CompareKind.LESS, left=x, right=zero))
    call.give(Where(condition=below, right=x, left=call.add(
        Binary(kind=BinaryKind.MUL, left=x, right=slope))))


@operator(" ".join(COMPARED), since=7)
def comparison(call: Call) -> None:
    call.give(Compare(kind=COMPARED[call.node.op_type], left=call.plain_operand(0),
                      right=call.plain_operand(1)))


@operator(" ".join(JOINED), since=7)
def variadic(call: Call) -> None:
    call.give(Logical(kind=JOINED[call.node.op_type], left=call.plain_operand(0),
                      right=call.plain_operand(1)))


@operator("Not")
def opposite(call: Call) -> None:
    call.give(Not(x=call.plain_operand(0)))


@operator("IsNaN")
def is_no_number(call: Call) -> None:
    x = call.plain_operand(0)
    call.give(Compare(kind=CompareKind.NOT_EQUAL, left=x, right=x))


@operator("IsInf", "detect_negative detect_positive")
def is_infinite(call: Call) -> None:
    x = call.plain_operand(0)
    positive, negative = call.flag("detect_positive", True), call.flag("detect_negative", True)
    if positive and negative:
        x = call.add(Unary(kind=UnaryKind.ABS, x=x))
    bound = np.inf if positive else -np.inf if negative else np.nan      # nothing equals NaN
    call.give(Compare(kind=CompareKind.EQUAL, left=x,
                      right=call.scalar(bound, call.type_of(x).dtype)))


@operator("Where")
def where(call: Call) -> None:
    call.give(Where(condition=call.plain_operand(0), left=call.plain_operand(1),
                    right=call.plain_operand(2)))


@operator("Cast", "to saturate")
def cast(call: Call) -> None:
    call.give(Cast(x=call.plain_operand(0), dtype=dtype_of(call.integer("to", 0))))


@operator("CastLike", "saturate")
def cast_like(call: Call) -> None:
    call.give(Cast(x=call.plain_operand(0), dtype=call.type(1).dtype))


@operator("FastGelu BiasGelu", domain=MICROSOFT)
def biased_gelu(call: Call) -> None:
    kind = UnaryKind.GELU_TANH if call.node.op_type == "FastGelu" else UnaryKind.GELU
    x = call.plain_operand(0)
    if call.has(1):
        x = call.add(Binary(kind=BinaryKind.ADD, left=x, right=call.plain_operand(1)))
    call.give(Unary(kind=kind, x=x))
