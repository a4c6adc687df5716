"""Nodes that add up: reductions, norms, running sums and products of matrices."""

from __future__ import annotations

import numpy as np

from .elements import near
from .nodes import Draw, Node, node

# To the reference, the logarithm of an infinite sum is no number.
JUDGES = {"ReduceLogSumExp": {"runtime": True, "opset": 20}}


@node("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
      "ReduceSum ReduceSumSquare")
def reductions(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axes = draw.rng.permutation(len(shape))[:draw.number(0, len(shape))].astype(np.int64)
    kinds = ["float32", "float64"]
    if op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1"):
        kinds += ["int32", "int64"]
    if op in ("ReduceMax", "ReduceMin"):
        kinds += ["int8", "uint8", "bool"]
    dtype = draw.one(*kinds)
    x = (draw.numbers if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") else draw.term)(
        shape, dtype)
    if op == "ReduceLogSum" and x.dtype.kind == "f":
        x = np.abs(x)
    return Node([x, axes if len(axes) else None],
                {"keepdims": draw.number(0, 1),
                 "noop_with_empty_axes": int(draw.chance(20) and not len(axes))},
                **near(dtype, atol=1e-5), **JUDGES.get(op, {}))


@node("ArgMax ArgMin")
def places(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    dtype = draw.one("float32", "int8", "int32", "float64")
    x = draw.numbers(shape, dtype, odd=False)
    x = np.round(x) if x.dtype.kind == "f" else x % 4
    return Node([x.astype(dtype)], {"axis": draw.axis(shape), "keepdims": draw.number(0, 1),
                                    "select_last_index": draw.number(0, 1)})


@node("Softmax LogSoftmax Hardmax")
def shares(draw: Draw, op: str) -> Node:
    shape, dtype = draw.shape(1, least=int(op == "Hardmax")), draw.one("float32", "float64")
    return Node([draw.real(shape, dtype, odd=op != "Hardmax")], {"axis": draw.axis(shape)},
                **near(dtype))


@node("LpNormalization")
def lengths_of_one(draw: Draw, op: str) -> Node:
    """The reference adds up negative numbers as they are."""
    shape = draw.shape(1, least=1)
    return Node([draw.term(shape)], {"axis": draw.axis(shape), "p": draw.number(1, 2)},
                runtime=True, opset=21)


@node("CumSum CumProd")
def running(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    x = draw.term(shape, draw.one("float32", "float64", "int32"))
    return Node([x, np.array(draw.axis(shape))], {"exclusive": draw.number(0, 1),
                                                  "reverse": draw.number(0, 1)}, atol=1e-5)


@node("TopK")
def largest(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    axis = draw.axis(shape)
    x = draw.numbers(shape, draw.one("float32", "int8", "uint64"), odd=False)
    x = x % 5 if x.dtype.kind in "iu" else x                    # with equal ones
    return Node([x, np.array([draw.number(0, shape[axis])])],
                {"axis": axis, "largest": draw.number(0, 1)}, outputs=2)


@node("BatchNormalization")
def batch_norms(draw: Draw, op: str) -> Node:
    shape = draw.shape(2, 4)
    channels = (shape[1],)
    return Node([draw.term(shape), *(draw.term(channels) for _ in range(3)),
                 draw.real(channels, low=0.1, high=4, odd=False)], {"epsilon": 0.01})


@node("InstanceNormalization")
def instance_norms(draw: Draw, op: str) -> Node:
    shape = draw.shape(3, 4, least=1)
    return Node([draw.term(shape), draw.term(shape[1:2]), draw.term(shape[1:2])],
                {"epsilon": 0.01}, rtol=1e-4, atol=1e-5)


@node("LayerNormalization")
def layer_norms(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    axis = draw.number(0, len(shape) - 1)
    return Node([draw.term(shape), draw.term(shape[axis:]),
                 draw.term(shape[axis:]) if draw.chance() else None],
                {"axis": axis, "epsilon": 0.01}, rtol=1e-4, atol=1e-5)


@node("GroupNormalization")
def group_norms(draw: Draw, op: str) -> Node:
    groups, each = draw.number(1, 2), draw.number(1, 2)
    shape = (draw.number(1, 2), groups * each, *draw.shape(1, 2, least=1))
    return Node([draw.term(shape), draw.term(shape[1:2]), draw.term(shape[1:2])],
                {"num_groups": groups, "epsilon": 0.01}, rtol=1e-4, atol=1e-5)


def factors(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of two matrices, or stacks of them, or vectors."""
    rows, depth, columns = draw.shape(3, 3, most=6)
    batch = draw.shape(0, 2, most=3)
    left = (*(batch if draw.chance() else draw.like(batch)), rows, depth)
    right = (*(batch if left[:-2] != batch or draw.chance() else draw.like(batch)), depth, columns)
    if draw.chance(20):
        return (depth,), right
    return (left, (depth,)) if draw.chance(20) else (left, right)


@node("MatMul")
def products(draw: Draw, op: str) -> Node:
    left, right = factors(draw)
    dtype = draw.one("float32", "float32", "float64", "int32")
    return Node([draw.term(left, dtype), draw.term(right, dtype)], rtol=1e-4, atol=1e-5)


@node("MatMulInteger")
def products_of_bytes(draw: Draw, op: str) -> Node:
    left, right = factors(draw)
    kinds = draw.one("int8", "uint8"), draw.one("int8", "uint8")
    return Node([draw.whole(left, kinds[0]), draw.whole(right, kinds[1]),
                 draw.whole((), kinds[0]) if draw.chance() else None,
                 draw.whole((), kinds[1]) if draw.chance() else None])


@node("QLinearMatMul")
def quantized_products(draw: Draw, op: str) -> Node:
    """Scales are powers of two, so that no rounding depends on the last place of a quotient; the
    reference adds the zero point before it rounds."""
    rows, depth, columns = draw.shape(3, 3, most=6)
    kind = draw.one("int8", "uint8")
    numbers = [(2, rows, depth), (depth, columns), ()]
    operands = []
    for shape, scale in zip(numbers, (0.5, 0.25, 2.0), strict=True):
        operands += [draw.whole(shape, kind), np.array(scale, np.float32),
                     draw.whole((), kind, low=0, high=20)]
    return Node([*operands[:6], *operands[7:]], runtime=True, opset=21)


@node("Gemm")
def sums_of_products(draw: Draw, op: str) -> Node:
    rows, depth, columns = draw.shape(3, 3, most=6)
    turned = draw.number(0, 1), draw.number(0, 1)
    left, right = (rows, depth), (depth, columns)
    bias = draw.one(None, (), (columns,), (1, columns), (rows, 1), (rows, columns))
    return Node([draw.term(left[::-1] if turned[0] else left),
                 draw.term(right[::-1] if turned[1] else right),
                 None if bias is None else draw.term(bias)],
                {"transA": turned[0], "transB": turned[1], "alpha": float(draw.one(1, 0.5)),
                 "beta": float(draw.one(1, 2))}, rtol=1e-4, atol=1e-5)


@node("Einsum")
def named_axes(draw: Draw, op: str) -> Node:
    sizes = dict(zip("abcde", draw.shape(5, 5, most=3), strict=True))
    words = ["".join(draw.rng.permutation(list("abcde"))[:draw.number(1, 3)])
             for _ in range(draw.number(1, 3))]
    letters = sorted(set("".join(words)))
    wanted = "".join(draw.rng.permutation(letters)[:draw.number(0, len(letters))])
    return Node([draw.real(tuple(sizes[each] for each in word), "float64", odd=False)
                 for word in words], {"equation": f"{','.join(words)}->{wanted}"})


@node("DFT")
def spectra(draw: Draw, op: str) -> Node:
    """ONNX Runtime, whose angles are of 32 bits, has four digits of odd lengths."""
    shape, parts = draw.shape(2, 3, least=1), draw.number(1, 2)
    axis = draw.number(0, len(shape) - 1)
    inverse = draw.chance(30)
    onesided = parts == 1 and not inverse and draw.chance()
    length = np.array(draw.number(1, 9)) if draw.chance() else None
    dtype = draw.one("float32", "float64")
    return Node([draw.real((*shape, parts), dtype, odd=False), length, np.array(axis)],
                {"inverse": int(inverse), "onesided": int(onesided)}, rtol=1e-3, atol=1e-4,
                runtime=True, opset=20)


@node("STFT")
def spectra_of_frames(draw: Draw, op: str) -> Node:
    length, parts = draw.number(1, 9), draw.number(1, 2)
    signal = (draw.number(1, 3), draw.number(length, 30), parts)
    dtype = draw.one("float32", "float64")
    window = draw.real((length,), dtype, odd=False) if draw.chance() else None
    return Node([draw.real(signal, dtype, odd=False), np.array(draw.number(1, 5)), window,
                 np.array(length) if window is None or draw.chance() else None],
                {"onesided": int(parts == 1 and draw.chance())}, rtol=1e-3, atol=1e-4,
                runtime=True, opset=20)
