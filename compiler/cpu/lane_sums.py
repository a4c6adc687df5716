"""Sums along memory, lane by lane: several partial sums side by side, then fewer, then their sum.

    y[i] = sum of x[i, k] over k    →    p[i, l] = sum of x[i, k × 8 + l] over k
                                         q[i, l] = p[i, l] + p[i, l + 4]
                                         y[i] = sum of q[i, l] over l

A vector adds to all partial sums at once. The last one begins where it ends with the last term, and
leaves out what was added before. The order of terms does not depend on anything but the
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
    binary,
    minimum,
    select,
)
from ..expression.rewrite import substitute
from ..expression.tensor import Tensor, compute, reduce_axis
from .strides import strides_of

FOLDED = 4              # partial sums that are added one after the other
LANES, FOLDS = ".lanes", ".folded"


def along_memory(tensor: Tensor) -> Axis | None:
    """The reduce axis along which a vector would lie in memory, if no other axis does."""
    if not isinstance(tensor.body, Reduction):
        return None
    strides, last = strides_of(tensor), tensor.reduce_axes[-1]
    if last.extent < 8 or any(axis.extent > 1 and 1 in strides.read(axis) <= {0, 1}
                              for axis in tensor.axes[-1:]):
        return None
    return last if strides.along(last) <= {0, 1} and 1 in strides.along(last) and (
        last in strides.free) else None


def split_into_lane_sums(tensor: Tensor, lanes: int) -> Tensor:
    """The tensor as a sum of partial sums."""
    assert isinstance(tensor.body, Reduction)
    body, last = tensor.body, tensor.body.axes[-1]
    lanes = min(lanes, 1 << last.extent.bit_length() - 1)
    lane = Axis("lane", lanes)
    outer = reduce_axis(last.name, -(-last.extent // lanes))
    place: Expression = outer * lanes + lane
    if last.extent % lanes:
        place = minimum(outer * lanes, last.extent - lanes) + lane
    value = substitute(body.value, {last: place})
    if last.extent % lanes:
        value = select(outer * lanes <= place, value, identity(body))
    axes = tuple(replace(axis) for axis in tensor.axes)
    value = substitute(value, dict(zip(tensor.axes, axes, strict=True)))
    partial = Tensor(f"{tensor.name}{LANES}", (*tensor.shape, lanes), tensor.dtype, (*axes, lane),
                     Reduction(body.combiner, value, (*body.axes[:-1], outer)))
    if lanes > FOLDED:
        partial = _fold(partial, body.combiner, f"{tensor.name}{FOLDS}")
    over = reduce_axis("lane", partial.shape[-1])
    return replace(tensor, body=Reduction(
        body.combiner, Element(partial, (*tensor.axes, over)), (over,)))


def _fold(partial: Tensor, combiner: str, name: str) -> Tensor:
    """Fewer partial sums: neighbours of neighbours as vectors."""
    def element(*i: Expression) -> Expression:
        parts: list[Expression] = [partial[(*i[:-1], i[-1] + first)]
                                   for first in range(0, partial.shape[-1], FOLDED)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [binary(combiner, one, other)
                     for one, other in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    return compute(name, (*partial.shape[:-1], FOLDED), element)


def identity(body: Reduction) -> Expression:
    """What changes nothing."""
    if body.combiner in ("+", "*"):
        return Constant(int(body.combiner == "*"), body.dtype)
    largest = body.combiner == "min"
    if body.dtype in FLOATS:
        return Constant(float("inf" if largest else "-inf"), body.dtype)
    return Constant(LIMITS[body.dtype][largest], body.dtype)
