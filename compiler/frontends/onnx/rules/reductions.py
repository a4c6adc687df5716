"""Operators that make one number of many."""

from __future__ import annotations

import numpy as np

from ....graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.quantize import Clamp
from ....graph.operations.pointwise.unary import Unary, UnaryKind
from ..call import Call
from ..operator_table import operator
from .data_movement import axes_of

# What is summed, how, and what becomes of it.
STEPS: dict[str, tuple[UnaryKind | None, ReduceKind, UnaryKind | None]] = {
    "ReduceSum": (None, ReduceKind.SUM, None), "ReduceMean": (None, ReduceKind.MEAN, None),
    "ReduceMax": (None, ReduceKind.MAX, None), "ReduceMin": (None, ReduceKind.MIN, None),
    "ReduceProd": (None, ReduceKind.PROD, None),
    "ReduceL1": (UnaryKind.ABS, ReduceKind.SUM, None),
    "ReduceL2": (UnaryKind.SQUARE, ReduceKind.SUM, UnaryKind.SQRT),
    "ReduceSumSquare": (UnaryKind.SQUARE, ReduceKind.SUM, None),
    "ReduceLogSum": (None, ReduceKind.SUM, UnaryKind.LOG)}


@operator(" ".join(STEPS), "axes keepdims noop_with_empty_axes")
def reduction(call: Call) -> None:
    before, kind, after = STEPS[call.node.op_type]
    x, axes, keep = call.plain_operand(0), _axes(call), call.flag("keepdims", True)
    if before is not None:
        x = call.add(Unary(kind=before, x=x))
    operation = Reduce(kind=kind, x=x, axes=axes, keep=keep)
    if after is None:
        call.give(operation)
    else:
        call.give(Unary(kind=after, x=call.add(operation)))


def _axes(call: Call) -> tuple[int, ...]:
    rank = len(call.type(0).shape)
    axes = axes_of(call, 1, rank)
    if not axes:
        axes = () if call.flag("noop_with_empty_axes") else tuple(range(rank))
    return axes


@operator("ReduceLogSumExp", "axes keepdims noop_with_empty_axes")
def log_sum_exp(call: Call) -> None:
    """log Σ exp(x − m) + m, where m is the largest number, or as near as a finite one is: so no
    power is too large."""
    x, axes, keep = call.plain_operand(0), _axes(call), call.flag("keepdims", True)
    limit = float(np.finfo(call.type_of(x).dtype).max) if call.type_of(x).is_float else None
    most = call.add(Clamp(x=call.add(Reduce(kind=ReduceKind.MAX, x=x, axes=axes, keep=True)),
                          low=None if limit is None else -limit, high=limit))
    powers = call.add(Unary(kind=UnaryKind.EXP, x=call.add(
        Binary(kind=BinaryKind.SUB, left=x, right=most))))
    logs = call.add(Unary(kind=UnaryKind.LOG, x=call.add(
        Reduce(kind=ReduceKind.SUM, x=powers, axes=axes, keep=keep))))
    same = call.reshape(most, call.type_of(logs).shape)
    call.give(Binary(kind=BinaryKind.ADD, left=logs, right=same))


@operator("ArgMax ArgMin", "axis keepdims select_last_index")
def place(call: Call) -> None:
    kind = ReduceKind.MAX if call.node.op_type == "ArgMax" else ReduceKind.MIN
    call.give(Arg(kind=kind, x=call.plain_operand(0), axis=call.integer("axis", 0),
                  keep=call.flag("keepdims", True), last=call.flag("select_last_index")))
