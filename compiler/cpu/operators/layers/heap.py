"""A heap of numbers and their places, in a loop nest: each is not before those below it."""

from __future__ import annotations

from collections.abc import Callable

from .....base.classes.dataclass import dataclass
from ....expression.expression import Expression, as_expression, both, either, negate
from ....nest.nest import Buffer, Statement, make_sequence
from ..nest_builders import assign, at, loop_over, place_of, when, with_buffer

INDEX = "int32"


@dataclass(frozen=True)
class Heap:
    """The root is last of all: that which is least of numbers where larger ones are better, and of
    equal ones that with the highest place."""

    values: Buffer
    places: Buffer
    count: int
    better: Callable[[Expression, Expression], Expression]

    def _is_before(self, value: Expression, place: Expression, slot: Expression) -> Expression:
        """Whether a number comes before that in a slot."""
        there = at(self.values, slot)
        return either(self.better(value, there), both(
            negate(self.better(there, value)), place < at(self.places, slot)))

    def put(self, slot: Expression, size: Expression | int, value: Expression,
            place: Expression) -> Statement:
        """Put a number in a slot of the first `size`, or in one below, from where what comes after
        it moves up."""
        wide = as_expression(size).cast(INDEX)

        def descend(new: Buffer, new_place: Buffer, hole: Buffer, child: Buffer) -> Statement:
            def inside(index: Expression) -> Expression:
                return place_of(index, self.count)

            left, here = inside(at(child, 0)), inside(at(hole, 0))
            right = inside(at(child, 0) + 1)
            step = make_sequence(
                assign(child, (0,), at(hole, 0) * 2 + 1),
                when(both(at(child, 0) + 1 < wide, self._is_before(
                    at(self.values, left), at(self.places, left), right)),
                    assign(child, (0,), at(child, 0) + 1)),
                when(both(at(child, 0) < wide,
                          self._is_before(at(new, 0), at(new_place, 0), left)),
                     assign(self.values, (here,), at(self.values, left)),
                     assign(self.places, (here,), at(self.places, left)),
                     assign(hole, (0,), at(child, 0))))
            return make_sequence(
                assign(new, (0,), value), assign(new_place, (0,), place),
                assign(hole, (0,), slot.cast(INDEX)),
                loop_over((self.count.bit_length() - 1,), lambda axes: step)
                if self.count > 1 else make_sequence(),
                assign(self.values, (here,), at(new, 0)),
                assign(self.places, (here,), at(new_place, 0)))

        return with_buffer("new", (1,), self.values.dtype, lambda new: with_buffer(
            "new_place", (1,), self.places.dtype, lambda new_place: with_buffer(
                "hole", (1,), INDEX, lambda hole: with_buffer(
                    "child", (1,), INDEX,
                    lambda child: descend(new, new_place, hole, child)))))

    def build(self) -> Statement:
        """Make a heap of numbers in any order."""
        half = self.count // 2
        if not half:
            return make_sequence()

        def settle(slot: Expression) -> Statement:
            return self.put(slot, self.count, at(self.values, slot), at(self.places, slot))

        return loop_over((half,), lambda axes: settle(half - 1 - axes[0]))

    def sort(self) -> Statement:
        """Put the numbers in order, the first one first: the root goes behind all others, again
        and again."""
        if self.count < 2:
            return make_sequence()

        def settle(last: Expression) -> Statement:
            def swap(value: Buffer, place: Buffer) -> Statement:
                return make_sequence(
                    assign(value, (0,), at(self.values, last)),
                    assign(place, (0,), at(self.places, last)),
                    assign(self.values, (last,), at(self.values, 0)),
                    assign(self.places, (last,), at(self.places, 0)),
                    self.put(as_expression(0), last, at(value, 0), at(place, 0)))

            return with_buffer("last", (1,), self.values.dtype, lambda value: with_buffer(
                "last_place", (1,), self.places.dtype, lambda place: swap(value, place)))

        return loop_over((self.count - 1,), lambda axes: settle(self.count - 1 - axes[0]))
