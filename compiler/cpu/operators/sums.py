"""Sums of many numbers.

The order in which real numbers are added is part of a result, and of how fast it is there: a sum
along the axis that is contiguous in memory consists of partial sums, each over every so-maniest
number, so that a processor adds many numbers at a time.

    partial[…, lane] = sum over chunk of x[…, chunk × lanes + lane]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...expression.expression import Expression, Reduction, total
from ...expression.tensor import Tensor, compute, reduce_axis
from .common import Axes

LANES = 16
FEWEST = 4                      # chunks that are worth it
Value = Callable[[Axes, Axes], Expression]      # at axes of the result and axes that are reduced


def reduced(name: str, shape: Sequence[int], extents: Sequence[int], value: Value,
            combine: Callable[..., Reduction]) -> Tensor:
    """All values over extents of at least one, combined."""
    if not extents:
        return compute(name, shape, lambda *i: value(i, ()))
    axes = tuple(reduce_axis(f"{name}_{place}", extent) for place, extent in enumerate(extents))
    return compute(name, shape, lambda *i: combine(value(i, axes), *axes))


def summed(name: str, shape: Sequence[int], extents: Sequence[int], value: Value,
           contiguous: bool) -> Tensor:
    """The sum of real numbers over extents of at least one; `contiguous`, if the last one is that
    of neighbours in memory."""
    if not extents or not contiguous or extents[-1] < FEWEST * LANES:
        return reduced(name, shape, extents, value, total)
    chunks, rest = divmod(extents[-1], LANES)
    outer = tuple(reduce_axis(f"{name}_{place}", extent)
                  for place, extent in enumerate(extents[:-1]))
    chunk = reduce_axis("chunk", chunks)
    partial = compute(f"{name}_partial", (*shape, LANES), lambda *i: total(
        value(i[:-1], (*outer, chunk * LANES + i[-1])), *outer, chunk))
    lane = reduce_axis("lane", LANES)
    lanes = compute(f"{name}_lanes" if rest else name, shape,
                    lambda *i: total(partial[(*i, lane)], lane))
    if not rest:
        return lanes
    others = tuple(reduce_axis(f"{name}_{place}", extent)
                   for place, extent in enumerate(extents[:-1]))
    last = reduce_axis("rest", rest)
    tail = compute(f"{name}_rest", shape, lambda *i: total(
        value(i, (*others, last + chunks * LANES)), *others, last))
    return compute(name, shape, lambda *i: lanes[i] + tail[i])
