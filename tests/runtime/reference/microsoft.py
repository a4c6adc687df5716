"""Nodes of ONNX Runtime's own operators, of which it is the judge."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import helper, numpy_helper

from .nodes import Draw, Node, node

Own = partial(Node, opset=20, runtime=True)
BYTES = ("int8", "uint8")


def name(words: str) -> str:
    return " ".join(f"com.microsoft.{each}" for each in words.split())


def store(draw: Draw, shape: tuple[int, ...], kind: str, scale: float) -> list[np.ndarray]:
    """A quantized tensor, its scale, a power of two, and its zero point."""
    return [draw.whole(shape, kind), np.array(scale, np.float32), draw.whole((), kind, 0, 20)]


@node(name("Gelu FastGelu QuickGelu"))
def functions(draw: Draw, op: str) -> Node:
    return Own([draw.real(draw.shape(1, least=1), odd=op.endswith(".Gelu"))], rtol=1e-4, atol=1e-5)


@node(name("BiasGelu"))
def with_a_bias(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    return Own([draw.real(shape), draw.real(shape[-1:])], rtol=1e-4, atol=1e-5)


@node(name("FusedMatMul"))
def products(draw: Draw, op: str) -> Node:
    rows, depth, columns = draw.shape(3, 3, least=1)
    turned = draw.number(0, 1)
    return Own([draw.real((2, rows, depth), odd=False),
                draw.real((2, columns, depth) if turned else (2, depth, columns), odd=False)],
               {"transB": turned, "alpha": 0.5}, rtol=1e-4, atol=1e-5)


@node(name("QuantizeLinear"))
def quantized(draw: Draw, op: str) -> Node:
    kind = draw.one(*BYTES)
    return Own([draw.real(draw.shape(1), low=-30, high=30, odd=False), np.array(0.25, np.float32),
                draw.whole((), kind)])


@node(name("DequantizeLinear"))
def dequantized(draw: Draw, op: str) -> Node:
    return Own(store(draw, draw.shape(1), draw.one(*BYTES), 0.25))


@node(name("QLinearAdd QLinearMul"))
def of_two(draw: Draw, op: str) -> Node:
    shape, kind = draw.shape(1, least=1), draw.one(*BYTES)
    return Own([*store(draw, shape, kind, 0.5), *store(draw, shape, kind, 0.25),
                *store(draw, (), kind, 2.0)[1:]], atol=1)      # ties are rounded another way


@node(name("QLinearLeakyRelu QLinearSigmoid QLinearSoftmax"))
def of_one(draw: Draw, op: str) -> Node:
    shape, kind = draw.shape(1, least=1), draw.one(*BYTES)
    out = [np.array(1 / 256, np.float32), np.array(np.iinfo(kind).min, kind)]
    attributes = {"alpha": 0.25} if op.endswith("Relu") else {}
    if op.endswith("Softmax"):
        attributes = {"opset": 13, "axis": -1}
    return Own([*store(draw, shape, kind, 0.125), *(
        store(draw, (), kind, 0.125)[1:] if op.endswith("Relu") else out)], attributes, atol=1)


@node(name("QLinearAveragePool QLinearGlobalAveragePool"))
def pools(draw: Draw, op: str) -> Node:
    kind = draw.one(*BYTES)
    x = store(draw, (1, draw.number(1, 3), draw.number(2, 4), draw.number(2, 4)), kind, 0.25)
    attributes = {"channels_last": 0} if "Global" in op else {"kernel_shape": [2, 2]}
    return Own([*x, *store(draw, (), kind, 0.5)[1:]], attributes, atol=1)


@node(name("QLinearReduceMean"))
def means(draw: Draw, op: str) -> Node:
    shape, kind = draw.shape(1, least=1), draw.one(*BYTES)
    """Which ONNX Runtime only describes."""
    axes, keep = np.array([draw.axis(shape)]), draw.number(0, 1)
    return Node([*store(draw, shape, kind, 0.25), *store(draw, (), kind, 0.5)[1:]],
                {"axes": axes.tolist(), "keepdims": keep}, atol=1, meaning=(
        helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(axes)),
        helper.make_node("DequantizeLinear", ["x0", "x1", "x2"], ["real"]),
        helper.make_node("ReduceMean", ["real", "axes"], ["mean"], keepdims=keep),
        helper.make_node("QuantizeLinear", ["mean", "x3", "x4"], ["y0"])))


@node(name("QLinearConcat"))
def joined(draw: Draw, op: str) -> Node:
    shape, kind = draw.shape(1, least=1), draw.one(*BYTES)
    parts = [each for _ in range(draw.number(1, 3)) for each in store(draw, shape, kind, 0.25)]
    return Own([*store(draw, (), kind, 0.5)[1:], *parts], {"axis": draw.axis(shape)}, atol=1)


@node(name("QGemm"))
def sums_of_products(draw: Draw, op: str) -> Node:
    rows, depth, columns = draw.shape(3, 3, least=1)
    kind = draw.one(*BYTES)
    weights = store(draw, (depth, columns), "int8", 0.25)
    return Own([*store(draw, (rows, depth), kind, 0.5), *weights[:2], np.array(0, np.int8), None,
                *store(draw, (), kind, 8.0)[1:]], atol=1)


@node(name("DynamicQuantizeMatMul"))
def products_quantized_as_needed(draw: Draw, op: str) -> Node:
    rows, depth, columns = draw.shape(3, 3, least=1)
    scales = draw.one((), (columns,))
    return Own([draw.real((rows, depth), odd=False), draw.whole((depth, columns), "int8", -64, 63),
                draw.real(scales, odd=False, low=0.05, high=0.5),
                np.zeros(scales, np.int8) if draw.chance() else None,
                draw.real((columns,), odd=False) if draw.chance() else None], rtol=1e-5, atol=1e-5)


@node(name("MatMulIntegerToFloat"))
def real_products(draw: Draw, op: str) -> Node:
    rows, depth, columns = draw.shape(3, 3, least=1)
    kind = draw.one(*BYTES)
    left = store(draw, (rows, depth), kind, 0.5)
    right = store(draw, (depth, columns), "int8", 0.25)
    return Own([left[0], right[0], left[1], right[1], left[2], np.array(0, np.int8)])
