"""Nodes that move numbers, pick them and write them to places."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from .nodes import NUMBERS, Draw, Node, node

KINDS = ("float32", "int8", "int64", "bool", "float64", "uint16")


def anything(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return draw.numbers(shape, draw.one(*KINDS))


def integers(values) -> np.ndarray:
    return np.array(list(values), np.int64)


@node("Reshape")
def reshaped(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    wanted = [int(each) for each in draw.rng.permutation(shape)]
    if draw.chance() and 0 not in wanted:
        wanted[draw.number(0, len(wanted) - 1)] = -1
    return Node([anything(draw, shape), integers(wanted)], {"allowzero": int(0 in wanted)})


@node("Transpose")
def transposed(draw: Draw, op: str) -> Node:
    shape = draw.shape()
    order = [int(each) for each in draw.rng.permutation(len(shape))]
    return Node([anything(draw, shape)], {"perm": order} if order and draw.chance(75) else {})


@node("Concat")
def joined(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axis, dtype = draw.axis(shape), draw.one(*KINDS)
    parts = []
    for _ in range(draw.number(1, 3)):
        own = list(shape)
        own[axis] = draw.number(0, 3)
        parts.append(draw.numbers(tuple(own), dtype))
    return Node(parts, {"axis": axis})


@node("Split")
def parted(draw: Draw, op: str) -> Node:
    shape = list(draw.shape(1))
    sizes = [draw.number(0, 3) for _ in range(draw.number(1, 3))]
    axis = draw.axis(tuple(shape))
    shape[axis] = sum(sizes)
    return Node([anything(draw, tuple(shape)), integers(sizes)], {"axis": axis}, outputs=len(sizes))


@node("Slice")
def sliced(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axes = draw.rng.permutation(len(shape))[:draw.number(1, len(shape))]
    return Node([anything(draw, shape), *(integers(draw.number(-6, 6) for _ in axes)
                                          for _ in range(2)),
                 axes.astype(np.int64), integers(draw.one(-3, -1, 1, 2) for _ in axes)],
                runtime=True)           # the reference takes −6 of 4 numbers for their end


@node("Squeeze")
def squeezed(draw: Draw, op: str) -> Node:
    shape = list(draw.shape(1))
    axes = [draw.number(0, len(shape) - 1)]
    shape[axes[0]] = 1
    return Node([anything(draw, tuple(shape)), integers(axes) if draw.chance(75) else None])


@node("Unsqueeze")
def unsqueezed(draw: Draw, op: str) -> Node:
    shape = draw.shape(0, 3)
    return Node([anything(draw, shape), integers(draw.rng.permutation(len(shape) + 2)[:2])])


@node("Expand")
def expanded(draw: Draw, op: str) -> Node:
    shape = draw.shape()
    return Node([anything(draw, draw.like(shape)), integers(shape)])


@node("Tile")
def repeated(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    return Node([anything(draw, shape), integers(draw.number(0, 3) for _ in shape)])


@node("Flatten")
def flattened(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    return Node([anything(draw, shape)], {"axis": draw.number(0, len(shape))})


@node("Pad")
def bordered(draw: Draw, op: str) -> Node:
    shape, mode = draw.shape(1, least=1), draw.one("constant", "edge", "reflect", "wrap")
    most = [size - 1 if mode == "reflect" else size if mode == "wrap" else 3 for size in shape]
    pads = integers(draw.number(0, each) for each in most * 2)
    return Node([draw.real(shape), pads, draw.real((), odd=False) if mode == "constant" else None],
                {"mode": mode})


@node("Gather")
def picked(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axis = draw.axis(shape)
    wanted = draw.shape(0, 2) if shape[axis] else (0,)
    size = max(shape[axis], 1)
    return Node([anything(draw, shape), draw.whole(wanted, draw.one("int64", "int32"), -size,
                                                   size - 1)], {"axis": axis})


def places(draw: Draw, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Indices for a tensor of a shape along an axis."""
    size = shape[axis]
    wanted = tuple(draw.number(0, 4) * min(size, 1) if place == axis % len(shape) else other
                   for place, other in enumerate(shape))
    return draw.whole(wanted, "int64", -size, max(size - 1, 0))


@node("GatherElements")
def picked_one_by_one(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axis = draw.number(0, len(shape) - 1)           # from the end, the reference looks elsewhere
    return Node([anything(draw, shape), places(draw, shape, axis)], {"axis": axis})


@node("GatherND")
def picked_by_place(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    depth = draw.number(1, len(shape))
    rows = draw.shape(1, 2)
    indices = np.stack([draw.whole(rows, "int64", -size, size - 1) for size in shape[:depth]], -1)
    return Node([anything(draw, shape), indices])


def all_different(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Indices that write no place twice: in which order they would is left open."""
    some = [min(size, 2) for size in shape]
    row = np.arange(some[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
    return np.ascontiguousarray(np.broadcast_to(row, some))


@node("Scatter ScatterElements")
def written_one_by_one(draw: Draw, op: str) -> Node:
    shape = draw.shape(1)
    axis = draw.number(0, len(shape) - 1)
    kind = draw.one("none", "add", "mul", "min", "max") if op == "ScatterElements" else "none"
    indices = all_different(shape, axis) if kind == "none" else places(draw, shape, axis)
    dtype = draw.one("float32", "int32")
    attributes = {"axis": axis} | ({"reduction": kind} if op == "ScatterElements" else {})
    return Node([draw.numbers(shape, dtype), indices, draw.numbers(indices.shape, dtype)],
                attributes, **({} if op == "ScatterElements" else {"opset": 10, "runtime": True}))


@node("ScatterND")
def written_by_place(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    depth, rows = draw.number(1, len(shape)), draw.shape(1, 2, most=3)
    indices = np.stack([draw.whole(rows, "int64", 0, size - 1) for size in shape[:depth]], axis=-1)
    return Node([draw.real(shape), indices, draw.real((*rows, *shape[depth:]))],
                {"reduction": draw.one("add", "mul", "min", "max")})


@node("TensorScatter")
def written_to_a_cache(draw: Draw, op: str) -> Node:
    batch, length, width = draw.number(1, 2), draw.number(1, 4), draw.number(1, 3)
    some = draw.number(1, length)
    mode = draw.one("linear", "circular")
    last = length - some if mode == "linear" else length - 1
    return Node([draw.real((batch, 2, length, width)), draw.real((batch, 2, some, width)),
                 draw.whole((batch,), "int64", 0, last)], {"mode": mode})


@node("DepthToSpace SpaceToDepth")
def blocks(draw: Draw, op: str) -> Node:
    n, c, h, w = draw.shape(4, 4, most=3)
    size = draw.number(1, 2)
    if op == "SpaceToDepth":
        return Node([draw.real((n, c, h * size, w * size))], {"blocksize": size})
    return Node([draw.real((n, c * size * size, h, w))],
                {"blocksize": size, "mode": draw.one("DCR", "CRD")})


@node("ReverseSequence")
def turned(draw: Draw, op: str) -> Node:
    shape = draw.shape(2, least=1)
    time = draw.number(0, 1)
    return Node([anything(draw, shape), draw.whole((shape[1 - time],), "int64", 1, shape[time])],
                {"time_axis": time, "batch_axis": 1 - time})


@node("OneHot")
def one_of_many(draw: Draw, op: str) -> Node:
    shape, depth = draw.shape(0, 3), draw.number(1, 4)
    return Node([draw.whole(shape, "int64", -depth - 1, depth + 1), np.array(depth, np.int64),
                 draw.numbers((2,), draw.one("float32", "int32"), odd=False)],
                {"axis": draw.number(-len(shape) - 1, len(shape))})


@node("Trilu")
def triangles(draw: Draw, op: str) -> Node:
    shape = draw.shape(2)
    return Node([anything(draw, shape), np.array(draw.number(-5, 5)) if draw.chance(75) else None],
                {"upper": draw.number(0, 1)})


@node("EyeLike")
def diagonals(draw: Draw, op: str) -> Node:
    return Node([draw.real(draw.shape(2, 2, least=1))],
                {"k": draw.number(-3, 3), "dtype": draw.one(1, 6, 7, 11)})


@node("Compress")
def compressed(draw: Draw, op: str) -> Node:
    shape = draw.shape(1, least=1)
    axis = draw.axis(shape)
    return Node([anything(draw, shape), draw.numbers((draw.number(1, shape[axis]),), "bool")],
                {"axis": axis})


@node("Shape Size")
def counts(draw: Draw, op: str) -> Node:
    shape = draw.shape()
    attributes = {"start": draw.number(-3, 3)} if op == "Shape" and draw.chance() else {}
    return Node([anything(draw, shape)], attributes)


@node("Constant")
def constants(draw: Draw, op: str) -> Node:
    array = draw.numbers(draw.shape(), draw.one(*NUMBERS))
    return Node([], {"value": numpy_helper.from_array(array)})


@node("ConstantOfShape")
def filled(draw: Draw, op: str) -> Node:
    value = numpy_helper.from_array(draw.numbers((1,), draw.one("float32", "int64", "bool")))
    return Node([integers(draw.shape())], {"value": value} if draw.chance() else {})


@node("Range")
def progressions(draw: Draw, op: str) -> Node:
    step = draw.one(-2, -1, 1, 3)
    dtype = draw.one("int64", "int32", "float32")
    return Node([np.array(each, dtype) for each in (draw.number(-5, 5), draw.number(-5, 5), step)])
