"""Pools. Those of three dimensions are two pools, one after the other: a maximum of maxima, or an
average of averages of as many."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from .....graph.operations.data_movement.shape import Pad, Reshape
from .....graph.operations.layers.reduction import Reduce, ReduceKind
from .....graph.operations.layers.window import Pool, PoolKind
from .....graph.operations.layers.window_places import MaxPlace
from .....graph.operations.pointwise.binary import Binary, BinaryKind
from .....graph.operations.pointwise.unary import Unary, UnaryKind
from .....graph.types import GraphError
from ...call import Call
from ...operator_table import operator
from .convolutions import Side, as_images, kernel_shape, place, sides_of

POOL = "auto_pad ceil_mode dilations kernel_shape pads strides"


@operator("MaxPool", f"{POOL} storage_order")
def max_pool(call: Call) -> None:
    x = call.tensor(0)
    sides, more = _sides(call, x)
    last = build_pool(call, x, PoolKind.MAX, sides, more)
    call.give_moved(last, last.x)
    if len(call.node.output) > 1 and call.node.output[1]:
        _give_places(call, x, sides, more)


@operator("AveragePool", f"{POOL} count_include_pad")
def average_pool(call: Call) -> None:
    x = call.plain_operand(0)
    sides, more = _sides(call, x)
    include = call.flag("count_include_pad")
    last = build_pool(call, x, PoolKind.AVERAGE, sides, more, include)
    call.give_moved(last, last.x)


def _sides(call: Call, x: str) -> tuple[list[Side], list[int]]:
    """How windows lie, and by how much the last hang over."""
    sizes = call.type_of(x).shape[2:]
    if not 1 <= len(sizes) <= 3:
        raise GraphError(f"the input has shape {call.type_of(x).shape}, but images of one to three "
                         f"dimensions have 3 to 5 axes")
    sides = sides_of(call, sizes, kernel_shape(call, len(sizes)))
    return sides, [side.overhang if call.flag("ceil_mode") else 0 for side in sides]


def build_pool(call: Call, x: str, kind: PoolKind, sides: Sequence[Side], more: Sequence[int],
               include_pad: bool = False) -> Pool | Reshape:
    """A pool of images of any dimensions: its last step."""
    shape = call.type_of(x).shape
    flat = Side(1, 1)
    if len(sides) == 2:
        return _pool_2d(call, x, kind, (sides[0], sides[1]), (more[0], more[1]), include_pad)
    if len(sides) == 1:
        images = call.reshape(x, (*shape[:2], 1, shape[2]))
        found = add_step(call, _pool_2d(call, images, kind, (flat, sides[0]), (0, more[0]),
                                        include_pad))
        return Reshape(x=found, shape=(*shape[:2], call.type_of(found).shape[3]))
    n, channels, depth = shape[:3]
    images = call.reshape(x, (n, channels * depth, *shape[3:]))
    slices = add_step(call, _pool_2d(call, images, kind, (sides[1], sides[2]), (more[1], more[2]),
                                     include_pad))
    inner = call.type_of(slices).shape[2:]
    stacks = call.reshape(slices, (n, channels, depth, prod(inner)))
    found = add_step(call,
                     _pool_2d(call, stacks, kind, (sides[0], flat), (more[0], 0), include_pad))
    return Reshape(x=found, shape=(n, channels, call.type_of(found).shape[2], *inner))


def add_step(call: Call, operation: Pool | Reshape) -> str:
    """A step, of which the result has the scales of what it reads."""
    return call.move(operation, operation.x)


def _pool_2d(call: Call, images: str, kind: PoolKind, sides: tuple[Side, Side],
             more: tuple[int, int], include_pad: bool) -> Pool:
    """A pool of images of two dimensions."""
    where = place(*sides)
    pad = where.pad
    if include_pad and any(more):       # what hangs over does not count, but what was padded does
        images = call.add(Pad(x=images, before=(0, 0, pad[0], pad[2]),
                              after=(0, 0, pad[1], pad[3])))
        pad, include_pad = (0, 0, 0, 0), False
    return Pool(x=images, kind=kind, kernel=where.kernel, stride=where.stride,
                dilation=where.dilation, channel_axis=1, count_include_pad=include_pad,
                pad=(pad[0], pad[1] + more[0], pad[2], pad[3] + more[1]))


def _give_places(call: Call, x: str, sides: Sequence[Side], more: Sequence[int]) -> None:
    """Where maxima are in the whole tensor."""
    shape = call.type_of(x).shape
    if len(sides) > 2:
        raise GraphError("places of maxima are supported in one or two dimensions")
    images = as_images(call, x)
    rows, columns = [Side(1, 1), *sides][-2:]
    below, right = [0, *more][-2:]
    where = place(rows, columns)
    top, bottom, left, last = where.pad
    places = call.add(MaxPlace(
        x=images, kernel=where.kernel, stride=where.stride, dilation=where.dilation, channel_axis=1,
        pad=(top, bottom + below, left, last + right), by_column=call.flag("storage_order")))
    planes = call.reshape(call.numbers(shape[0] * shape[1]), (*shape[:2], 1, 1))
    starts = call.add(Binary(kind=BinaryKind.MUL, left=planes,
                             right=call.scalar(prod(shape[2:]), "int64")))
    found = call.add(Binary(kind=BinaryKind.ADD, left=places, right=starts))
    windows = call.type_of(found).shape
    call.give_reshaped(found, (*windows[:2], *windows[4 - len(sides):]), 1)


@operator("LpPool", f"{POOL} p", since=2)
def norm_pool(call: Call) -> None:
    x, power = call.plain_operand(0), call.integer("p", 2)
    if power < 1:
        raise GraphError(f"p is {power}, but must be 1 or more")
    sides, more = _sides(call, x)
    whole = [Side(side.size, side.taps, side.stride, side.dilation, side.before, side.after + rest)
             for side, rest in zip(sides, more, strict=True)]
    means = add_step(call, build_pool(call, _powers(call, x, power), PoolKind.AVERAGE, whole,
                                      (0,) * len(whole), True))
    sums = call.add(Binary(kind=BinaryKind.MUL, left=means, right=call.scalar(
        prod(side.taps for side in sides), call.type_of(means).dtype)))
    _give_root(call, sums, power)


@operator("GlobalLpPool", "p", since=2)
def global_norm_pool(call: Call) -> None:
    x, power = call.plain_operand(0), call.integer("p", 2)
    if power < 1:
        raise GraphError(f"p is {power}, but must be 1 or more")
    axes = tuple(range(2, len(call.type_of(x).shape)))
    _give_root(call, call.add(Reduce(kind=ReduceKind.SUM, x=_powers(call, x, power), axes=axes,
                                     keep=True)), power)


def _powers(call: Call, x: str, power: int) -> str:
    """Numbers without their sign, to a power."""
    plain = call.add(Unary(kind=UnaryKind.ABS, x=x))
    exponent = call.scalar(power, call.type_of(x).dtype)
    return call.add(Binary(kind=BinaryKind.POW, left=plain, right=exponent))


def _give_root(call: Call, sums: str, power: int) -> None:
    dtype = np.dtype(call.type_of(sums).dtype)
    call.give(Binary(kind=BinaryKind.POW, left=sums, right=call.scalar(1 / power, str(dtype))))


@operator("GlobalAveragePool GlobalMaxPool")
def global_pool(call: Call) -> None:
    average = call.node.op_type == "GlobalAveragePool"
    x = call.plain_operand(0) if average else call.tensor(0)
    shape = call.type_of(x).shape
    if not 3 <= len(shape) <= 5:
        kind = ReduceKind.MEAN if average else ReduceKind.MAX
        call.give(Reduce(kind=kind, x=call.plain_operand(0), axes=tuple(range(2, len(shape))),
                         keep=True))
        return
    sides = [Side(size, size) for size in shape[2:]]
    last = build_pool(call, x, PoolKind.AVERAGE if average else PoolKind.MAX, sides,
                      (0,) * len(sides))
    call.give_moved(last, last.x)
