"""Softmax and the norms."""

from __future__ import annotations

from math import prod

from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.indexing import Expand
from ....graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from ....graph.operations.layers.reduction import Reduce, ReduceKind
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import Compare, CompareKind, Where
from ....graph.operations.pointwise.unary import Unary, UnaryKind
from ....graph.types import GraphError, Shape
from ..call import Call
from ..operator_table import operator

NEW_SOFTMAX = 13            # the opset from which on softmax is over a single axis


@operator("Softmax LogSoftmax", "axis")
def softmax(call: Call) -> None:
    kind = Softmax if call.node.op_type == "Softmax" else LogSoftmax
    x, shape = call.plain_operand(0), call.type(0).shape
    if call.opset >= NEW_SOFTMAX:
        call.give(kind(x=x, axis=call.integer("axis", -1)))
        return
    flat = flatten_to_matrix(call, x, normalize_axis(call.integer("axis", 1), len(shape)))
    call.give_reshaped(call.add(kind(x=flat, axis=1)), shape)


def flatten_to_matrix(call: Call, tensor: str, axis: int) -> str:
    """A tensor as a matrix: the axes before one, and those from it on."""
    shape = call.type_of(tensor).shape
    return call.reshape(tensor, (prod(shape[:axis]), prod(shape[axis:])))


@operator("BatchNormalization", "epsilon momentum training_mode spatial")
def batch_norm(call: Call) -> None:
    if not call.flag("spatial", True):
        raise GraphError("numbers for each pixel are not supported")
    x = call.plain_operand(0)
    scale, bias, mean, variance = (call.plain_operand(each) for each in range(1, 5))
    if call.flag("training_mode"):
        mean, variance = _batch_statistics(call, x, mean, variance)
    else:
        call.one_result()
    call.give(BatchNorm(x=x, scale=scale, bias=bias, mean=mean, variance=variance,
                        epsilon=call.real("epsilon", 1e-5), channel_axis=1))


def _batch_statistics(call: Call, x: str, mean: str, variance: str) -> tuple[str, str]:
    """The mean and the variance of a batch. Those of many batches, which are results, move towards
    them."""
    shape = call.type_of(x).shape
    if len(shape) < 2:
        raise GraphError(f"the input has shape {shape}, but must have channels")
    axes = (0, *range(2, len(shape)))
    means = call.add(Reduce(kind=ReduceKind.MEAN, x=x, axes=axes, keep=True))
    away = call.add(Binary(kind=BinaryKind.SUB, left=x, right=means))
    spread = call.add(Reduce(kind=ReduceKind.MEAN, axes=axes,
                             x=call.add(Unary(kind=UnaryKind.SQUARE, x=away))))
    means = call.reshape(means, (shape[1],))
    kept = call.real("momentum", 0.9)
    for number, (old, new) in enumerate(((mean, means), (variance, spread)), start=1):
        dtype = call.type_of(new).dtype
        parts = [call.add(Binary(kind=BinaryKind.MUL, left=each, right=call.scalar(share, dtype)))
                 for each, share in ((old, kept), (new, 1 - kept))]
        call.give(Binary(kind=BinaryKind.ADD, left=parts[0], right=parts[1]), number)
    return means, spread


@operator("InstanceNormalization", "epsilon")
def instance_norm(call: Call) -> None:
    call.give(InstanceNorm(x=call.plain_operand(0), scale=call.plain_operand(1),
                           bias=call.plain_operand(2),
                           epsilon=call.real("epsilon", 1e-5), channel_axis=1))


def full(call: Call, tensor: str, shape: Shape) -> str:
    """A parameter repeated to a shape."""
    if call.type_of(tensor).shape == shape:
        return tensor
    return call.move(Expand(x=tensor, shape=shape), tensor)


@operator("LayerNormalization", "axis epsilon stash_type")
def layer_norm(call: Call) -> None:
    x, shape = call.plain_operand(0), call.type(0).shape
    axis = normalize_axis(call.integer("axis", -1), len(shape))
    epsilon = call.real("epsilon", 1e-5)
    scale = full(call, call.plain_operand(1), shape[axis:])
    bias = full(call, call.plain_operand(2), shape[axis:]) if call.has(2) else None
    call.give(LayerNorm(x=x, scale=scale, bias=bias, axis=axis, epsilon=epsilon))
    if any(call.node.output[1:]):
        _give_moments(call, call.cast(x, "float32"), tuple(range(axis, len(shape))), epsilon)


def _give_moments(call: Call, x: str, axes: tuple[int, ...], epsilon: float) -> None:
    """The mean and the inverse of the standard deviation as further results."""
    mean = call.add(Reduce(kind=ReduceKind.MEAN, x=x, axes=axes, keep=True))
    away = call.add(Binary(kind=BinaryKind.SUB, left=x, right=mean))
    spread = call.add(Reduce(kind=ReduceKind.MEAN, axes=axes, keep=True,
                             x=call.add(Unary(kind=UnaryKind.SQUARE, x=away))))
    wider = call.add(Binary(kind=BinaryKind.ADD, left=spread,
                            right=call.scalar(epsilon, call.type_of(x).dtype)))
    call.give_existing(mean, 1)
    if len(call.node.output) > 2:
        call.give(Unary(kind=UnaryKind.RSQRT, x=wider), 2)


@operator("LpNormalization", "axis p")
def lp_norm(call: Call) -> None:
    x, power = call.plain_operand(0), call.integer("p", 2)
    axis = normalize_axis(call.integer("axis", -1), len(call.type(0).shape))
    if power not in (1, 2):
        raise GraphError(f"p is {power}, but must be 1 or 2")
    sizes = call.add(Unary(kind=UnaryKind.ABS if power == 1 else UnaryKind.SQUARE, x=x))
    total = call.add(Reduce(kind=ReduceKind.SUM, x=sizes, axes=(axis,), keep=True))
    if power == 2:
        total = call.add(Unary(kind=UnaryKind.SQRT, x=total))
    zero = call.scalar(0, call.type_of(x).dtype)
    empty = call.add(Compare(kind=CompareKind.EQUAL, left=total, right=zero))
    ratio = call.add(Binary(kind=BinaryKind.DIV, left=x, right=total))
    call.give(Where(condition=empty, left=zero, right=ratio))


@operator("GroupNormalization", "epsilon num_groups stash_type", since=21)
def group_norm(call: Call) -> None:
    x, shape = call.plain_operand(0), call.type(0).shape
    groups = call.integer("num_groups", 0)
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise GraphError(f"{shape} has no {groups} groups of channels")
    flat = call.reshape(x, (shape[0], groups, prod(shape[1:]) // groups))
    norm = call.add(LayerNorm(x=flat, axis=2, epsilon=call.real("epsilon", 1e-5)))
    along = (shape[1], *(1,) * (len(shape) - 2))
    scale, bias = (call.reshape(call.plain_operand(each), along) for each in (1, 2))
    scaled = call.add(Binary(kind=BinaryKind.MUL, left=call.reshape(norm, shape), right=scale))
    call.give(Binary(kind=BinaryKind.ADD, left=scaled, right=bias))


@operator("LRN", "alpha beta bias size")
def local_response_norm(call: Call) -> None:
    size = call.integer("size", 0)
    if size < 1:
        raise GraphError(f"size is {size}, but must be 1 or more")
    call.give(LocalResponseNorm(x=call.plain_operand(0), before=(size - 1) // 2, after=size // 2,
                                alpha=call.real("alpha", 1e-4) / size,
                                beta=call.real("beta", 0.75), bias=call.real("bias", 1),
                                channel_axis=1))
