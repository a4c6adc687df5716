"""Operators that pick numbers by index, write them to places, or put them in order."""

from __future__ import annotations

import numpy as np

from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.indexing import Expand, Gather, GatherElements, OneHot
from ....graph.operations.data_movement.scatter import ScatterElements, ScatterKind, ScatterNd
from ....graph.operations.data_movement.shape import Transpose
from ....graph.operations.layers.reduction import Arg, ReduceKind
from ....graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import Compare, CompareKind, Where
from ....graph.types import GraphError, Shape
from ..call import Call
from ..onnx_file import dtype_of
from ..operator_table import operator
from .norms import NEW_SOFTMAX, flatten_to_matrix

REDUCTIONS = {"none": ScatterKind.REPLACE, "add": ScatterKind.ADD, "mul": ScatterKind.MUL,
              "min": ScatterKind.MIN, "max": ScatterKind.MAX}


@operator("GatherElements", "axis")
def gather_elements(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(GatherElements(x=x, indices=call.plain_operand(1),
                                   axis=call.integer("axis", 0)), x)


@operator("Scatter ScatterElements", "axis reduction")
def scatter_elements(call: Call) -> None:
    kind = REDUCTIONS[call.text("reduction", "none", " ".join(REDUCTIONS))]
    call.give(ScatterElements(x=call.plain_operand(0), indices=call.plain_operand(1),
                              updates=call.plain_operand(2),
                              kind=kind, axis=call.integer("axis", 0)))


@operator("ScatterND", "reduction")
def scatter_nd(call: Call) -> None:
    kind = REDUCTIONS[call.text("reduction", "none", " ".join(REDUCTIONS))]
    call.give(ScatterNd(x=call.plain_operand(0), indices=call.plain_operand(1),
                        updates=call.plain_operand(2), kind=kind))


@operator("TensorScatter", "axis mode")
def scatter_steps(call: Call) -> None:
    """Later steps of each sequence, written after those that are there."""
    shape, updates = call.type(0).shape, call.type(1).shape
    axis = normalize_axis(call.integer("axis", -2), len(shape))
    if not axis or len(updates) != len(shape):
        raise GraphError(f"axis is {axis} of {shape}, and updates are {updates}")
    steps = call.reshape(call.numbers(updates[axis]), along(updates[axis], axis, len(shape)))
    if call.has(2):
        first = call.cast(call.plain_operand(2), "int64")
        first = call.reshape(first, along(shape[0], 0, len(shape)))
        steps = call.add(Binary(kind=BinaryKind.ADD, left=steps, right=first))
    if call.text("mode", "linear", "linear circular") == "circular":
        steps = call.add(Binary(kind=BinaryKind.MOD, left=steps,
                                right=call.scalar(shape[axis], "int64")))
    places = call.add(Expand(x=steps, shape=updates))
    call.give(ScatterElements(x=call.plain_operand(0), indices=places,
                              updates=call.plain_operand(1), axis=axis))


def along(size: int, axis: int, axes: int) -> Shape:
    """The shape of numbers along one of some axes."""
    return tuple(size if each == axis else 1 for each in range(axes))


@operator("TopK", "axis largest sorted", since=10)
def top_k(call: Call) -> None:
    x = call.tensor(0)
    axis = normalize_axis(call.integer("axis", -1), len(call.type(0).shape))
    count = call.integers(1, "k")
    if len(count) != 1:
        raise GraphError(f"k is {count}, but must be a single number")
    places = call.add(TopK(x=x, count=count[0], axis=axis, largest=call.flag("largest", True),
                           sorted=call.flag("sorted", True)))
    call.give_moved(GatherElements(x=x, indices=places, axis=axis), x)
    call.give_existing(places, 1)


@operator("CumSum CumProd", "exclusive reverse")
def cumulative(call: Call) -> None:
    axis = call.integers(1, "axis")
    if len(axis) != 1:
        raise GraphError(f"axis is {axis}, but must be a single number")
    kind = CumulativeKind.SUM if call.node.op_type == "CumSum" else CumulativeKind.PROD
    call.give(Cumulative(kind=kind, x=call.plain_operand(0), axis=axis[0],
                         exclusive=call.flag("exclusive"), reverse=call.flag("reverse")))


@operator("Compress", "axis")
def compress(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    condition = call.array(1, "the condition")
    if condition.dtype != bool or condition.ndim != 1:
        raise GraphError(f"the condition is {condition.dtype} of shape {condition.shape}, but must "
                         f"be a list of bool")
    if "axis" not in call.attributes:
        x, shape = call.reshape(x, (call.type(0).size,)), (call.type(0).size,)
    places = np.flatnonzero(condition)
    axis = normalize_axis(call.integer("axis", 0), len(shape))
    if places.size and places[-1] >= shape[axis]:
        raise GraphError(f"the condition holds at {places[-1]}, but the axis has {shape[axis]}")
    call.give_moved(Gather(x=x, indices=call.constant(places.astype(np.int64)), axis=axis), x)


@operator("ReverseSequence", "batch_axis time_axis")
def reverse_sequence(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    batch, time = call.integer("batch_axis", 1), call.integer("time_axis", 0)
    if sorted((batch, time)) != [0, 1] or len(shape) < 2:
        raise GraphError(f"batch_axis is {batch} and time_axis {time}, but must be 0 and 1")
    swapped = (1, 0, *range(2, len(shape)))
    if time == 0:
        x = call.move(Transpose(x=x, order=swapped), x)
    step = call.numbers(shape[time])
    length = call.reshape(call.cast(call.plain_operand(1), "int64"), (shape[batch], 1))
    inside = call.add(Compare(kind=CompareKind.LESS, left=step, right=length))
    last = call.add(Binary(kind=BinaryKind.SUB, left=length, right=call.scalar(1, "int64")))
    mirrored = call.add(Binary(kind=BinaryKind.SUB, left=last, right=step))
    places = call.add(Where(condition=inside, left=mirrored, right=step))
    gather = Gather(x=x, indices=places, axis=1, batch=1)
    if time == 1:
        call.give_moved(gather, x)
    else:
        found = call.move(gather, x)
        call.give_moved(Transpose(x=found, order=swapped), found)


@operator("Trilu", "upper")
def triangle(call: Call) -> None:
    x, shape = call.plain_operand(0), call.type(0).shape
    if len(shape) < 2:
        raise GraphError(f"the input has shape {shape}, but must be matrices")
    given = call.integers(1, "k") if call.has(1) else (0,)
    if len(given) != 1:
        raise GraphError(f"k is {given}, but must be a single number")
    kind = CompareKind.GREATER_EQUAL if call.flag("upper", True) else CompareKind.LESS_EQUAL
    call.give(Where(condition=_diagonal(call, shape[-2:], given[0], kind), left=x,
                    right=call.scalar(0, call.type_of(x).dtype)))


@operator("EyeLike", "dtype k")
def identity_matrix(call: Call) -> None:
    shape = call.type(0).shape
    if len(shape) != 2:
        raise GraphError(f"the input has shape {shape}, but must be a matrix")
    wanted = call.integer("dtype", 0)
    dtype = dtype_of(wanted) if wanted else call.type(0).dtype
    ones = _diagonal(call, shape, call.integer("k", 0), CompareKind.EQUAL)
    call.give_existing(call.cast(ones, dtype))


def _diagonal(call: Call, shape: Shape, offset: int, kind: CompareKind) -> str:
    """Where in a matrix column − row compares like this to an offset."""
    rows, columns = call.reshape(call.numbers(shape[0]), (shape[0], 1)), call.numbers(shape[1])
    moved = call.add(Binary(kind=BinaryKind.ADD, left=rows, right=call.scalar(
        max(min(offset, 1 << 40), -1 << 40), "int64")))
    return call.add(Compare(kind=kind, left=columns, right=moved))


@operator("Hardmax", "axis")
def hardmax(call: Call) -> None:
    x, shape = call.plain_operand(0), call.type(0).shape
    axis = normalize_axis(call.integer("axis", -1 if call.opset >= NEW_SOFTMAX else 1), len(shape))
    if call.opset < NEW_SOFTMAX:
        x, axis = flatten_to_matrix(call, x, axis), 1
    inner = call.type_of(x)
    place = call.add(Arg(kind=ReduceKind.MAX, x=x, axis=axis))
    found = call.add(OneHot(indices=place, depth=inner.shape[axis], axis=axis), dtype=inner.dtype)
    call.give_reshaped(found, shape)
