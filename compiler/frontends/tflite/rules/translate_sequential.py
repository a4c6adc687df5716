"""Operators that sort, sum as they go, write to places, and work on bits."""

from __future__ import annotations

import numpy as np

from ....graph.operations.data_movement.indexing import Expand, Gather, GatherElements
from ....graph.operations.data_movement.scatter import ScatterKind, ScatterNd
from ....graph.operations.data_movement.shape import Reshape, Slice, Transpose
from ....graph.operations.layers.reduction import Reduce, ReduceKind
from ....graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.bits import Bits, BitsKind
from ....graph.operations.pointwise.logic import Compare, CompareKind, Where
from ....graph.operations.pointwise.unary import Cast
from ....graph.operations.vision.suppression import NonMaxSuppression
from ....graph.types import GraphError
from ..operator_node import Node, reads
from .translate_shape import few

LONGEST = 1 << 16           # steps of a sequence that is turned around
BITS = {"BITWISE_XOR": BitsKind.XOR, "RIGHT_SHIFT": BitsKind.SHIFT_RIGHT}


@reads("TOPK_V2", inputs=2, outputs=2)
def top_k(node: Node) -> None:
    (count,) = few(node.integers(1, "k"), 1, "a number")
    x = node.input(0)
    places = node.step("places", TopK(x=x, count=count), dtype="int32")
    node.add(GatherElements(x=x, indices=places, axis=len(node.type(0).shape) - 1))
    node.give_existing(places, 1)


@reads("CUMSUM", options="CumsumOptions", inputs=2)
def cumulative_sum(node: Node) -> None:
    (axis,) = few(node.integers(1, "the axis"), 1, "an axis")
    node.add(Cumulative(kind=CumulativeKind.SUM, x=node.input(0), axis=axis,
                        exclusive=bool(node.option("Exclusive")),
                        reverse=bool(node.option("Reverse"))))


@reads("SCATTER_ND", inputs=3)
def scatter_nd(node: Node) -> None:
    """Written into zeros; what meets is added."""
    shape, updates = node.integers(2, "the shape"), node.type(1)
    if updates.is_quantized:
        raise GraphError(f"updates are {updates}, but must be plain numbers")
    zero = node.constant("zero", np.zeros((), updates.dtype))
    node.add(ScatterNd(x=node.step("zeros", Expand(x=zero, shape=shape)), indices=node.input(0),
                       updates=node.input(1), kind=ScatterKind.ADD))


@reads(*BITS, inputs=2)
def bits(node: Node) -> None:
    node.add(Bits(kind=BITS[node.operator.name], left=node.input(0), right=node.input(1)))


@reads("REVERSE_SEQUENCE", options="ReverseSequenceOptions", inputs=2)
def reverse_sequence(node: Node) -> None:
    """The first steps of each sequence backwards, as many as it has; others stay."""
    shape, time, batch = node.type(0).shape, node.option("SeqDim"), node.option("BatchDim")
    if not (0 <= time < len(shape) and 0 <= batch < len(shape)) or time == batch or (
            shape[time] > LONGEST):
        raise GraphError(f"axes {time} and {batch} of {shape} must be two, with at most {LONGEST} "
                         f"steps")
    order = (batch, time, *(axis for axis in range(len(shape)) if axis not in (time, batch)))
    turned = node.step("turned", Transpose(x=node.input(0), order=order))
    lengths = node.step("column", Reshape(
        x=node.step("wide", Cast(x=node.input(1), dtype="int64")), shape=(shape[batch], 1)))
    step = node.constant("steps", np.arange(shape[time], dtype=np.int64))
    one = node.constant("one", np.asarray(1, np.int64))
    last = node.step("last", Binary(kind=BinaryKind.SUB, left=lengths, right=one))
    inside = node.step("inside", Compare(kind=CompareKind.LESS, left=step, right=lengths))
    back = node.step("back", Binary(kind=BinaryKind.SUB, left=last, right=step))
    places = node.step("places", Where(condition=inside, left=back, right=step))
    picked = node.step("picked", Gather(x=turned, indices=places, axis=1, batch=1))
    node.add(Transpose(x=picked, order=tuple(np.argsort(order).tolist())))


@reads("NON_MAX_SUPPRESSION_V4", inputs=5, outputs=2)
def suppress(node: Node) -> None:
    """Boxes of one class: the indices of those that are kept, then zeros; and how many there
    are."""
    boxes, scores = node.type(0).shape, node.type(1).shape
    (most,) = few(node.integers(2, "the number of boxes"), 1, "a number")
    limits = [node.array(position) for position in (3, 4)]
    if any(each is None or each.size != 1 for each in limits) or len(boxes) != 2:
        raise GraphError("both thresholds must be constant numbers, and boxes have two axes")
    overlap, least = (float(each.reshape(-1)[0]) for each in limits if each is not None)
    kept = node.step("kept", NonMaxSuppression(
        boxes=node.step("boxes", Reshape(x=node.input(0), shape=(1, *boxes))),
        scores=node.step("scores", Reshape(x=node.input(1), shape=(1, 1, *scores))),
        count=most, overlap=overlap, least=least))
    rows = node.reading.builder.type_of(kept).shape[0]
    if rows != most:
        raise GraphError(f"{most} boxes are wanted of {rows}")
    index = node.step("index", Reshape(shape=(rows,), x=node.step("column", Slice(
        x=kept, starts=(0, 2), stops=(rows, 3), steps=(1, 1)))))
    zero = node.constant("zero", np.asarray(0, np.int64))
    there = node.step("there", Compare(kind=CompareKind.GREATER_EQUAL, left=index, right=zero))
    node.add(Cast(x=node.step("filled", Where(condition=there, left=index, right=zero)),
                  dtype="int32"))
    ones = node.step("ones", Cast(x=there, dtype="int32"))
    node.add(Reduce(kind=ReduceKind.SUM, x=ones, axes=(0,)), 1)
