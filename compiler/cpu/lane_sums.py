"""Sums along memory, lane by lane: several partial sums side by side, and then their sum.

    y[i] = sum of x[i, k] over k    →    p[i, l] = sum of x[i, k × 8 + l] over k
                                         y[i] = sum of p[i, l] over l

A vector adds to all partial sums at once. The order of terms does not depend on anything but the
number of lanes; floats are rounded differently than one by one, and mostly less.
"""

from __future__ import annotations

from dataclasses import replace

from ..expression.expression import (
    FLOATS,
    LIMITS,
    Axis,
    Constant,
    Element,
    Expression,
    Reduction,
    select,
)
from ..expression.rewrite import substitute
from ..expression.tensor import Tensor, reduce_axis
from .strides import strides_of


def along_memory(tensor: Tensor) -> Axis | None:
    """The reduce axis along which a vector would lie in memory, if no other axis does."""
    if not isinstance(tensor.body, Reduction):
        return None
    strides, last = strides_of(tensor), tensor.reduce_axes[-1]
    if last.extent < 8 or any(1 in {each.get(axis, 0) for each in strides.accesses[1:]}
                              for axis in tensor.axes[-1:]):
        return None
    return last if strides.along(last) <= {0, 1} and 1 in strides.along(last) and (
        last in strides.free) else None


def split_into_lane_sums(tensor: Tensor, lanes: int) -> Tensor:
    """The tensor as a sum of partial sums."""
    assert isinstance(tensor.body, Reduction)
    body, last = tensor.body, tensor.body.axes[-1]
    lanes = min(lanes, last.extent)
    lane = Axis("lane", lanes)
    outer = reduce_axis(last.name, -(-last.extent // lanes))
    place = outer * lanes + lane
    value = substitute(body.value, {last: place})
    if last.extent % lanes:
        value = select(place < last.extent, value, identity(body))
    axes = tuple(replace(axis) for axis in tensor.axes)
    value = substitute(value, dict(zip(tensor.axes, axes, strict=True)))
    partial = Tensor(f"{tensor.name}.lanes", (*tensor.shape, lanes), tensor.dtype, (*axes, lane),
                     Reduction(body.combiner, value, (*body.axes[:-1], outer)))
    over = reduce_axis("lane", lanes)
    return replace(tensor, body=Reduction(
        body.combiner, Element(partial, (*tensor.axes, over)), (over,)))


def identity(body: Reduction) -> Expression:
    """What changes nothing."""
    if body.combiner in ("+", "*"):
        return Constant(int(body.combiner == "*"), body.dtype)
    largest = body.combiner == "min"
    if body.dtype in FLOATS:
        return Constant(float("inf" if largest else "-inf"), body.dtype)
    return Constant(LIMITS[body.dtype][largest], body.dtype)
