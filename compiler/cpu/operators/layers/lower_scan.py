"""Running sums, and the largest numbers in order."""

from __future__ import annotations

from collections.abc import Callable

from ....expression.expression import (
    BOOL,
    Axis,
    Expression,
    as_expression,
    both,
    either,
    negate,
)
from ....graph.operation import normalize_axis
from ....graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from ....graph.types import TensorType
from ....nest.nest import Buffer, LoopKind, Nest, Statement, make_sequence
from ...registry import BufferOperand, lowers_to_nest
from ..lowering import is_nan, working
from ..nest_builders import assign, at, loop_over, nest_of, place_of, when, with_buffer
from .heap import Heap

BLOCK = 64              # numbers that are compared at a time


@lowers_to_nest(Cumulative)
def cumulative(operation: Cumulative, result: TensorType, target: Buffer,
               x: BufferOperand) -> Nest:
    """Real numbers are summed in 64 bits."""
    place = normalize_axis(operation.axis, len(result.shape))
    size, product = result.shape[place], operation.kind == CumulativeKind.PROD
    wide = "float64" if result.is_float else result.dtype

    def line(others: tuple[Axis, ...]) -> Statement:
        def step(total: Buffer, axes: tuple[Axis, ...]) -> Statement:
            here = size - 1 - axes[0] if operation.reverse else axes[0]
            indices = (*others[:place], here, *others[place:])
            value, before = at(x.buffer, *indices).cast(wide), at(total, 0)
            more = assign(total, (0,), before * value if product else before + value)
            store = assign(target, indices, at(total, 0).cast(result.dtype))
            return make_sequence(store, more) if operation.exclusive else make_sequence(more, store)

        return with_buffer("total", (1,), wide, lambda total: make_sequence(
            assign(total, (0,), int(product)), loop_over((size,), lambda axes: step(total, axes))))

    outside = [extent for axis, extent in enumerate(result.shape) if axis != place]
    return nest_of(target, loop_over(outside, line, LoopKind.PARALLEL), x)


@lowers_to_nest(TopK)
def top_k(operation: TopK, result: TensorType, target: Buffer, x: BufferOperand) -> Nest:
    """The best so far are a heap whose root is the last of them. Most numbers are only compared
    with it, some at a time."""
    place = normalize_axis(operation.axis, len(result.shape))
    count = operation.count
    wide = "uint8" if x.type.dtype == BOOL else working(x.type.dtype)

    def better(one: Expression, other: Expression) -> Expression:
        """Strictly, so that the first of equal ones stays first. What is no number is largest."""
        first, second = (other, one) if operation.largest else (one, other)
        less = first < second
        if x.type.is_float:
            less = either(less, both(negate(is_nan(first)), is_nan(second)))
        return less

    def line(others: tuple[Axis, ...]) -> Statement:
        def there(index: Expression) -> tuple[Expression, ...]:
            return (*others[:place], index, *others[place:])

        def value(j: Expression) -> Expression:
            return at(x.buffer, *there(j)).cast(wide)

        def fill(values: Buffer, places: Buffer) -> Statement:
            heap = Heap(values, places, count, better)
            return make_sequence(
                loop_over((count,), lambda axes: make_sequence(
                    assign(values, axes, value(axes[0])),
                    assign(places, axes, axes[0].cast(result.dtype)))),
                heap.build(), _select_best(heap, value, x.type.shape[place]), heap.sort(),
                _write_places(operation.sorted, count, places, target, there))

        return with_buffer("values", (count,), wide, lambda values: with_buffer(
            "places", (count,), result.dtype, lambda places: fill(values, places)))

    outside = [extent for axis, extent in enumerate(result.shape) if axis != place]
    return nest_of(target, loop_over(outside, line, LoopKind.PARALLEL), x)


def _select_best(heap: Heap, value: Callable[[Expression], Expression], size: int) -> Statement:
    """Put the numbers after the first ones in the heap as far as they are better than its root."""
    blocks, rest = divmod(size - heap.count, BLOCK)

    def take(j: Expression) -> Statement:
        return when(heap.better(value(j), at(heap.values, 0)), heap.put(
            as_expression(0), heap.count, value(j), j.cast(heap.places.dtype)))

    def block(axes: tuple[Axis, ...]) -> Statement:
        start = axes[0] * BLOCK + heap.count
        # LLVM makes vectors of this loop.
        return with_buffer("better", (1,), "int32", lambda some: make_sequence(
            assign(some, (0,), 0),
            loop_over((BLOCK,), lambda inside: assign(some, (0,), at(some, 0) + heap.better(
                value(start + inside[0]), at(heap.values, 0)).cast("int32"))),
            when(at(some, 0) > 0, loop_over((BLOCK,), lambda inside: take(start + inside[0])))))

    return make_sequence(
        *([loop_over((blocks,), block)] if blocks else ()),
        *([loop_over((rest,), lambda axes: take(axes[0] + (size - rest)))] if rest else ()))


def _write_places(is_sorted: bool, count: int, places: Buffer, target: Buffer,
                  there: Callable[[Expression], tuple[Expression, ...]]) -> Statement:
    """Places as they are, or in their own order: each goes to as many as are before it."""
    if is_sorted:
        return loop_over((count,), lambda axes: assign(target, there(axes[0]), at(places, axes[0])))

    def write_rank(axes: tuple[Axis, ...]) -> Statement:
        mine = at(places, axes[0])
        return with_buffer("rank", (1,), "int32", lambda rank: make_sequence(
            assign(rank, (0,), 0),
            loop_over((count,), lambda others: when(
                at(places, others[0]) < mine, assign(rank, (0,), at(rank, 0) + 1))),
            assign(target, there(place_of(at(rank, 0), count)), mine)))

    return loop_over((count,), write_rank)
