"""Images read at places that other numbers name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf

from ....expression.expression import Expression, both, either, maximum, minimum, select
from ....expression.functions import floor, magnitude, round_half_even, truncate
from ....expression.tensor import Tensor, compute
from ....graph.operations.vision.resize import ResizeKind
from ....graph.operations.vision.sampling import CUBIC, FAR, GridSample, Outside
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, each, is_nan, number, working

WIDE = "float64"
Tap = tuple[Expression, Expression]         # a pixel along an axis, and what it counts


@lowers(GridSample)
def grid_sample(operation: GridSample, result: TensorType, x: Operand, grid: Operand) -> Tensor:
    """Places first, once for all channels."""
    sides = x.type.shape[2:]
    places = [compute(f"places{axis}", grid.type.shape[:-1], _place(operation, grid, axis, size))
              for axis, size in enumerate(sides)]

    def element(i: Axes) -> Expression:
        n, channel, *there = i
        taps = [_taps(operation, place[(n, *there)], size)
                for place, size in zip(places, sides, strict=True)]
        total: Expression | None = None
        for several in product(*taps):
            weight = several[0][1]
            for _, share in several[1:]:
                weight = weight * share
            value = x.tensor[(n, channel, *(index for index, _ in several))].cast(WIDE)
            term = weight * value
            total = term if total is None else total + term
        assert total is not None
        return total.cast(working(result.dtype)).cast(result.dtype)

    return each(operation, result, element)


def _place(operation: GridSample, grid: Operand, axis: int,
           size: int) -> Callable[..., Expression]:
    """Where along an axis each number of the grid is, in pixels."""
    low, high = operation.borders(size)
    dtype = grid.type.dtype
    last = grid.type.shape[-1] - 1 - axis

    def round_place(value: Expression) -> Expression:
        return value.cast(dtype).cast(working(dtype))       # each step, in the grid's precision

    def element(*i: Expression) -> Expression:
        value = grid.tensor[(*i, last)].cast(working(dtype))
        length, start = (float(number(each_, dtype).value) for each_ in (high - low, low))
        value = round_place(round_place(round_place(round_place(value + 1) / 2) * length) +
                            start).cast(WIDE)
        found = select(is_nan(value), -inf, value)
        if operation.kind == ResizeKind.NEAREST:
            found = round_half_even(found)
        beyond = either(found < float(low), found > float(high))
        if operation.outside == Outside.BORDER:
            found = select(beyond, minimum(maximum(found, 0), size - 1), found)
        elif operation.outside == Outside.REFLECTION:
            found = select(beyond, _reflect(found, low, high), found)
        return minimum(maximum(found, -FAR), size - 1 + FAR)

    return element


def _reflect(place: Expression, low: float, high: float) -> Expression:
    """A place as mirrors at both ends show it."""
    if low == high:
        return number(low, WIDE)
    distance = magnitude(place - float(low))
    away = select(distance < inf, distance, 0)
    times = floor(away / float(high - low))
    rest = away - times * float(high - low)
    even = (floor(times * 0.5) * 2).equals(times)
    return select(even, rest + float(low), float(high) - rest)


def _taps(operation: GridSample, place: Expression, size: int) -> list[Tap]:
    """Pixels around a place, and what each of them counts."""
    if operation.kind == ResizeKind.NEAREST:
        return [_clip_tap(operation, place, number(1, WIDE), size)]
    below = floor(place)
    away = place - below
    if operation.kind == ResizeKind.LINEAR:
        return [_clip_tap(operation, below, 1 - away, size),
                _clip_tap(operation, below + 1, away, size)]
    return [_clip_tap(operation, below + step, weight, size)
            for step, weight in zip((-1, 0, 1, 2), _cubic(away), strict=True)]


def _cubic(away: Expression) -> list[Expression]:
    def near(t: Expression) -> Expression:
        return (t * (CUBIC + 2) - (CUBIC + 3)) * t * t + 1

    def far(t: Expression) -> Expression:
        return (((t - 5) * t + 8) * t - 4) * CUBIC

    return [far(away + 1), near(away), near(1 - away), far(2 - away)]


def _clip_tap(operation: GridSample, pixel: Expression, weight: Expression, size: int) -> Tap:
    """A pixel that is in the image, and what it counts. Pixels are whole real numbers."""
    if operation.outside == Outside.ZEROS:
        weight = select(both(pixel >= 0, pixel < size), weight, 0)
    elif operation.outside == Outside.REFLECTION:
        pixel = truncate(_reflect(pixel, *operation.borders(size)))
    index = minimum(maximum(pixel, 0), size - 1).cast("int64").cast("index")
    return maximum(minimum(index, size - 1), 0), weight
