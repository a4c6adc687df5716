"""Softmax and the norms."""

from __future__ import annotations

from math import prod

from ...graph.operation import normalized_axis
from ...graph.operations.elementwise import Binary, BinaryKind
from ...graph.operations.indexing import Expand
from ...graph.operations.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from ...graph.types import GraphError, Shape
from .call import Call
from .table import operator

NEW_SOFTMAX = 13            # the opset from which on softmax is over a single axis


@operator("Softmax LogSoftmax", "axis")
def softmax(call: Call) -> None:
    kind = Softmax if call.node.op_type == "Softmax" else LogSoftmax
    x, shape = call.plain(0), call.type(0).shape
    if call.opset >= NEW_SOFTMAX:
        call.give(kind(x=x, axis=call.integer("axis", -1)))
        return
    axis = normalized_axis(call.integer("axis", 1), len(shape))
    flat = call.reshaped(x, (prod(shape[:axis]), prod(shape[axis:])))
    call.give_reshaped(call.add(kind(x=flat, axis=1)), shape)


@operator("BatchNormalization", "epsilon momentum training_mode spatial")
def batch_norm(call: Call) -> None:
    if call.flag("training_mode") or not call.flag("spatial", True):
        raise GraphError("training_mode and numbers for each pixel are not supported")
    call.one_result()
    scale, bias, mean, variance = (call.plain(each) for each in range(1, 5))
    call.give(BatchNorm(x=call.plain(0), scale=scale, bias=bias, mean=mean, variance=variance,
                        epsilon=call.real("epsilon", 1e-5), channel_axis=1))


@operator("InstanceNormalization", "epsilon")
def instance_norm(call: Call) -> None:
    call.give(InstanceNorm(x=call.plain(0), scale=call.plain(1), bias=call.plain(2),
                           epsilon=call.real("epsilon", 1e-5), channel_axis=1))


def full(call: Call, tensor: str, shape: Shape) -> str:
    """A parameter repeated to a shape."""
    if call.type_of(tensor).shape == shape:
        return tensor
    return call.moved(Expand(x=tensor, shape=shape), tensor)


@operator("LayerNormalization", "axis epsilon stash_type")
def layer_norm(call: Call) -> None:
    call.one_result()
    shape = call.type(0).shape
    axis = normalized_axis(call.integer("axis", -1), len(shape))
    scale = full(call, call.plain(1), shape[axis:])
    bias = full(call, call.plain(2), shape[axis:]) if call.has(2) else None
    call.give(LayerNorm(x=call.plain(0), scale=scale, bias=bias, axis=axis,
                        epsilon=call.real("epsilon", 1e-5)))


@operator("GroupNormalization", "epsilon num_groups stash_type", since=21)
def group_norm(call: Call) -> None:
    x, shape = call.plain(0), call.type(0).shape
    groups = call.integer("num_groups", 0)
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise GraphError(f"{shape} has no {groups} groups of channels")
    flat = call.reshaped(x, (shape[0], groups, prod(shape[1:]) // groups))
    norm = call.add(LayerNorm(x=flat, axis=2, epsilon=call.real("epsilon", 1e-5)))
    along = (shape[1], *(1,) * (len(shape) - 2))
    scale, bias = (call.reshaped(call.plain(each), along) for each in (1, 2))
    scaled = call.add(Binary(kind=BinaryKind.MUL, left=call.reshaped(norm, shape), right=scale))
    call.give(Binary(kind=BinaryKind.ADD, left=scaled, right=bias))


@operator("LRN", "alpha beta bias size")
def local_response_norm(call: Call) -> None:
    size = call.integer("size", 0)
    if size < 1:
        raise GraphError(f"size is {size}, but must be 1 or more")
    call.give(LocalResponseNorm(x=call.plain(0), before=(size - 1) // 2, after=size // 2,
                                alpha=call.real("alpha", 1e-4) / size,
                                beta=call.real("beta", 0.75), bias=call.real("bias", 1),
                                channel_axis=1))
