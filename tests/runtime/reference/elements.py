"""Nodes that compute element by element."""

from __future__ import annotations

import numpy as np

from .nodes import INTEGERS, NUMBERS, REALS, Draw, Node, node

HALF = {"float16": {"rtol": 4e-3, "atol": 2e-3}}


def near(dtype, **more):
    """Tolerances of a type: half precision is computed in single and rounded once."""
    return HALF.get(dtype, {"rtol": 1e-5, "atol": 1e-6}) | more


@node("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp HardSwish Log Mish Reciprocal Selu "
      "Sigmoid Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh")
def functions(draw: Draw, op: str) -> Node:
    dtype = draw.one(*REALS)
    low, high = {"Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-1, 1), "Acosh": (1, 9),
                 "Log": (0, 9), "Sqrt": (0, 9)}.get(op, (-6, 6))
    least = int(op == "Softsign")       # of whose reference a single number is none
    return Node([draw.real(draw.shape(least), dtype, low=low, high=high)], **near(dtype))


@node("Ceil Floor Round")
def rounded(draw: Draw, op: str) -> Node:
    dtype = draw.one(*REALS)
    if draw.chance():
        return Node([(draw.whole(draw.shape(), "int8") / 2).astype(dtype)])
    return Node([draw.real(draw.shape(), dtype)])


@node("Abs Neg Sign Relu Identity")
def of_any_numbers(draw: Draw, op: str) -> Node:
    kinds = [each for each in NUMBERS if op != "Neg" or not each.startswith("u")]
    return Node([draw.numbers(draw.shape(), draw.one(*kinds))])


@node("Celu Elu Gelu HardSigmoid LeakyRelu ThresholdedRelu")
def with_settings(draw: Draw, op: str) -> Node:
    dtype = draw.one("float32", "float64") if op != "Celu" else "float32"
    attributes = {"approximate": draw.one("none", "tanh")} if op == "Gelu" else {
        "alpha": float(draw.one(0.125, 0.5, 1.0, 2.0))}
    if op == "HardSigmoid":
        attributes["beta"] = float(draw.one(0.25, 0.5))
    return Node([draw.real(draw.shape(), dtype)], attributes, **near(dtype))


@node("IsInf IsNaN")
def oddities(draw: Draw, op: str) -> Node:
    attributes = {"detect_negative": draw.number(0, 1),
                  "detect_positive": draw.number(0, 1)} if op == "IsInf" else {}
    return Node([draw.real(draw.shape(), draw.one("float32", "float64"))], attributes)


@node("Not")
def negated(draw: Draw, op: str) -> Node:
    return Node([draw.numbers(draw.shape(), "bool")])


@node("BitwiseNot")
def complement(draw: Draw, op: str) -> Node:
    return Node([draw.whole(draw.shape(), draw.one(*INTEGERS))])


def pair(draw: Draw, dtype: str, *, odd: bool = True) -> list[np.ndarray]:
    """Two tensors, one of which is repeated to meet the other."""
    shape = draw.shape()
    both = [draw.numbers(shape, dtype, odd=odd), draw.numbers(draw.like(shape), dtype, odd=odd)]
    return both if draw.chance() else both[::-1]


@node("Add Sub Mul")
def arithmetic(draw: Draw, op: str) -> Node:
    dtype = draw.one(*NUMBERS)
    return Node(pair(draw, dtype), **near(dtype))


@node("Div")
def quotients(draw: Draw, op: str) -> Node:
    """The reference divides integers as real numbers, so those are small here."""
    dtype = draw.one(*REALS, "int32", "int64", "uint8")
    if dtype in REALS:
        return Node(pair(draw, dtype), **near(dtype))
    shape = draw.shape()
    low = 0 if dtype.startswith("u") else -99
    left, right = draw.whole(shape, dtype, low, 99), draw.whole(draw.like(shape), dtype, low, 99)
    right[right == 0] = 3
    return Node([left, right])


@node("Mod")
def remainders(draw: Draw, op: str) -> Node:
    dtype = draw.one(*NUMBERS)
    left, right = pair(draw, dtype)
    if dtype in REALS:
        return Node([left, right], {"fmod": 1}, **near(dtype))
    right = np.where(right == 0, right.dtype.type(3), right)
    return Node([left, right], {"fmod": draw.number(0, 1)})


@node("Pow")
def powers(draw: Draw, op: str) -> Node:
    if draw.chance(30):
        shape = draw.shape()
        return Node([draw.whole(shape, "int32", -9, 9),
                     draw.whole(draw.like(shape), "int32", 0, 5)])
    dtype = draw.one("float32", "float64")
    return Node(pair(draw, dtype), rtol=2e-5)


@node("And Or Xor")
def of_truth(draw: Draw, op: str) -> Node:
    return Node(pair(draw, "bool"))


@node("Equal Greater GreaterOrEqual Less LessOrEqual")
def comparisons(draw: Draw, op: str) -> Node:
    left, right = pair(draw, draw.one(*NUMBERS))
    if left.shape == right.shape and draw.chance():
        right = np.where(draw.numbers(left.shape, "bool"), left, right)
    return Node([left, right])


@node("BitwiseAnd BitwiseOr BitwiseXor")
def bits(draw: Draw, op: str) -> Node:
    return Node(pair(draw, draw.one(*INTEGERS)))


@node("BitShift")
def shifts(draw: Draw, op: str) -> Node:
    dtype = draw.one("uint8", "uint16", "uint32", "uint64")
    left, right = pair(draw, dtype)
    return Node([left, right % (8 * right.dtype.itemsize)], {
        "direction": draw.one("LEFT", "RIGHT")})


@node("PRelu")
def slopes(draw: Draw, op: str) -> Node:
    shape = draw.shape()
    return Node([draw.real(shape), draw.real(draw.like(shape), odd=False)])


@node("Max Min Mean Sum")
def of_several(draw: Draw, op: str) -> Node:
    dtype = draw.one("float32", "float64") if op in ("Mean", "Sum") else draw.one(
        "float32", "float64", *INTEGERS)
    shape = draw.shape()
    return Node([draw.numbers(draw.like(shape) if each else shape, dtype)
                 for each in range(draw.number(1, 3))])


@node("Where")
def choices(draw: Draw, op: str) -> Node:
    shape, dtype = draw.shape(), draw.one(*NUMBERS, "bool")
    return Node([draw.numbers(draw.like(shape), "bool"), draw.numbers(shape, dtype),
                 draw.numbers(draw.like(shape), dtype)])


@node("Clip")
def bounds(draw: Draw, op: str) -> Node:
    dtype = draw.one("float32", "float64", *INTEGERS)
    low, high = sorted(draw.numbers((2,), dtype, odd=False))
    return Node([draw.numbers(draw.shape(), dtype), low if draw.chance() else None,
                 high if draw.chance() else None])


@node("Cast CastLike")
def casts(draw: Draw, op: str) -> Node:
    """What integers become of numbers that they cannot hold is left open."""
    source, wanted = draw.one(*NUMBERS, "bool"), draw.one(*NUMBERS, "bool")
    shape = draw.shape()
    if np.dtype(source).kind == "f" and np.dtype(wanted).kind in "iu":
        low = 0 if wanted.startswith("u") else -99
        x = draw.real(shape, source, odd=False, low=low, high=99)
    else:
        x = draw.numbers(shape, source)
    if op == "CastLike":
        return Node([x, np.zeros(1, wanted)])
    from onnx import helper
    return Node([x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(wanted))})


@node("BitCast")
def other_types(draw: Draw, op: str) -> Node:
    from onnx import helper
    source, wanted = draw.one(("float32", "int32"), ("int64", "float64"), ("uint8", "int8"),
                              ("float16", "uint16"))
    return Node([draw.numbers(draw.shape(), source)],
                {"to": helper.np_dtype_to_tensor_dtype(np.dtype(wanted))})


@node("Dropout")
def nothing_dropped(draw: Draw, op: str) -> Node:
    return Node([draw.real(draw.shape())])


@node("QuantizeLinear")
def quantized(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    dtype = draw.one("int8", "uint8", "int16", "uint16")
    x = draw.real(shape, low=-30, high=30)
    x[np.isnan(x)] = np.inf             # what is no number may become anything
    axis = draw.axis(shape)
    per = (shape[axis],) if draw.chance() and shape[axis] else ()
    # To the reference, infinity is the least integer.
    return Node([x, draw.real(per, odd=False, low=0.05, high=0.5), draw.whole(per, dtype)],
                {"axis": axis} if per else {}, runtime=True, opset=21)


@node("DequantizeLinear")
def dequantized(draw: Draw, op: str) -> Node:
    shape, dtype = draw.shape(1), draw.one("int8", "uint8", "int16", "uint16")
    axis = draw.axis(shape)
    per = (shape[axis],) if draw.chance() and shape[axis] else ()
    return Node([draw.whole(shape, dtype), draw.real(per, odd=False, low=0.05, high=0.5),
                 draw.whole(per, dtype) if draw.chance() else None],
                {"axis": axis} if per else {})


@node("DynamicQuantizeLinear")
def quantized_as_needed(draw: Draw, op: str) -> Node:
    """Numbers that have a largest one: there must be some."""
    return Node([draw.real(draw.shape(least=1), odd=False)], outputs=3)
