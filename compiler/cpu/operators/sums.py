"""Many values as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...expression.expression import Expression, Reduction
from ...expression.tensor import Tensor, compute, reduce_axis
from .lowering import Axes

Value = Callable[[Axes, Axes], Expression]      # at axes of the result and axes that are reduced


def reduce_values(name: str, shape: Sequence[int], extents: Sequence[int], value: Value,
                  combine: Callable[..., Reduction]) -> Tensor:
    """All values over extents of at least one, combined. Where they lie side by side in memory, the
    default schedule makes partial sums of them, lane by lane."""
    if not extents:
        return compute(name, shape, lambda *i: value(i, ()))
    axes = tuple(reduce_axis(f"{name}_{place}", extent) for place, extent in enumerate(extents))
    return compute(name, shape, lambda *i: combine(value(i, axes), *axes))
