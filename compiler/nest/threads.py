"""Whether the iterations of a loop are independent: no two write the same element, and none reads
what another writes.

Two boxes that two iterations touch are apart if they are apart in one dimension. There, the
distance between their starts is a sum of terms; those with equal values in both iterations cancel.
Its range and its step, the greatest common divisor of the remaining factors, show whether it can be
small enough to overlap. Where this proves nothing, the iterations count as dependent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from math import gcd

from ...base.classes.dataclass import dataclass
from ..expression.expression import Axis, Binary, Constant, Expression, walk
from ..expression.intervals import Interval, Known, interval_of
from .accesses import Conditions, Touch, intervals_under, touches
from .nest import Access, Allocate, Buffer, Loop, Statement, When, statements_of
from .places import place_of

EVERY_PAIR = 64         # iterations of a loop of which every pair is compared

Sum = Mapping[Expression | None, int]       # of terms times factors; None has the value 1


@dataclass(frozen=True)
class Event:
    """One thing that a statement touches."""

    statement: Statement
    touch: Touch

    @cached_property
    def sums(self) -> list[Sum]:
        """Where the box starts in each dimension and, if it is a single element, in memory: loops
        that were fused are apart there."""
        region = self.touch.region
        sums = [_sum(start) for start in region.start]
        if set(region.extents) == {1}:
            place = place_of(Access(region.buffer, region.start), {})
            flat: dict[Expression | None, int] = {None: place.constant}
            sums.append(flat | {term: factor for term, factor in place.terms.items()})
        return sums

    def intervals_in(self, loop: Loop, iteration: int) -> Known | None:
        """What is known in one iteration of a loop, or None if nothing happens in it."""
        return intervals_under(self.touch.conditions, {loop.axis: (iteration, iteration)})


@dataclass(frozen=True)
class Conflict:
    """Two events, one of them a write, that may touch the same element in two iterations."""

    first: Event
    first_iteration: int
    second: Event
    second_iteration: int


def conflict(loop: Loop, conditions: Conditions = ()) -> Conflict | None:
    """Two events that keep a loop's iterations from being independent, or None if there are none.
    `conditions` are those that hold around the loop."""
    inside = {loop.axis, *(each.axis for each in statements_of(loop.body)
                           if isinstance(each, Loop))}
    for events in _events_by_buffer(loop, conditions).values():
        known = [[event.intervals_in(loop, iteration) for iteration in range(loop.axis.extent)]
                 for event in events]
        for first, second in combinations_with_replacement(range(len(events)), 2):
            if not (events[first].touch.writes or events[second].touch.writes):
                continue
            pair = _Pair(events[first], events[second], inside)
            for one, other in _pairs(loop.axis.extent):
                if not pair.are_disjoint(known[first][one], known[second][other]):
                    return Conflict(events[first], one, events[second], other)
    return None


def _pairs(extent: int) -> Iterator[tuple[int, int]]:
    """Pairs of iterations, each in both orders: all of them or, of many iterations, those with the
    first and with the last one, between which lie all distances that there are."""
    if extent <= EVERY_PAIR:
        yield from permutations(range(extent), 2)
        return
    for each in range(1, extent):
        yield from ((0, each), (each, 0), (extent - 1 - each, extent - 1),
                    (extent - 1, extent - 1 - each))


def _events_by_buffer(loop: Loop, conditions: Conditions) -> dict[Buffer, list[Event]]:
    """What happens to each buffer that the iterations share."""
    found: dict[Buffer, list[Event]] = {}
    private = {each.buffer for each in statements_of(loop.body) if isinstance(each, Allocate)}
    for event in _events(loop.body, conditions):
        if event.touch.region.buffer not in private:
            found.setdefault(event.touch.region.buffer, []).append(event)
    return found


def _events(statement: Statement, conditions: Conditions) -> Iterator[Event]:
    for touch in touches(statement, conditions):
        yield Event(statement, touch)
    if isinstance(statement, When):
        conditions = (*conditions, statement.condition)
    for child in statement.children():
        yield from _events(child, conditions)


@dataclass(frozen=True)
class _Pair:
    """Two events in two different iterations."""

    first: Event
    second: Event
    inside: Collection[Axis]        # axes that differ between iterations; all others do not

    def are_disjoint(self, first_known: Known | None, second_known: Known | None) -> bool:
        """Whether they surely touch different elements, or one of them does not happen."""
        if first_known is None or second_known is None:
            return True
        places = range(min(len(self.first.sums), len(self.second.sums)))
        sides = range(len(self.first.touch.region.start))
        return any(self._are_sides_disjoint(place, first_known, second_known)
                   for place in sides) or any(
            self._are_apart(place, first_known, second_known) for place in places)

    def _extents(self, place: int) -> tuple[int, int]:
        if place == len(self.first.touch.region.start):
            return 1, 1                 # in memory
        return self.first.touch.region.extents[place], self.second.touch.region.extents[place]

    def _are_sides_disjoint(self, place: int, first_known: Known, second_known: Known) -> bool:
        """Whether one lies entirely before the other; this takes conditions into account."""
        first_low, first_high = interval_of(self.first.touch.region.start[place], first_known)
        second_low, second_high = interval_of(self.second.touch.region.start[place], second_known)
        first_extent, second_extent = self._extents(place)
        return first_high + first_extent <= second_low or (
            second_high + second_extent <= first_low)

    def _are_apart(self, place: int, first_known: Known, second_known: Known) -> bool:
        """Whether the distance between their starts is never small enough to overlap."""
        low = high = step = 0
        for factor, (least, most) in self._distance(place, first_known, second_known):
            low += min(factor * least, factor * most)
            high += max(factor * least, factor * most)
            if least != most:
                step = gcd(step, factor)
        first_extent, second_extent = self._extents(place)
        nearest = max(low, 1 - first_extent)        # they overlap at distances from here
        farthest = min(high, second_extent - 1)     # to here
        if step:
            nearest += (low - nearest) % step       # the first that is possible
        return nearest > farthest

    def _distance(self, place: int, first_known: Known,
                  second_known: Known) -> Iterator[tuple[int, Interval]]:
        """The terms of the distance, each with its factor and the range of its value."""
        first, second = self.first.sums[place], self.second.sums[place]
        for term in {**first, **second}:
            one, other = first.get(term, 0), second.get(term, 0)
            if term is None:
                yield one - other, (1, 1)
            elif self._is_same(term):
                yield one - other, interval_of(term, first_known)
            else:
                yield one, interval_of(term, first_known)
                yield -other, interval_of(term, second_known)

    def _is_same(self, term: Expression) -> bool:
        """Whether a term has the same value in both iterations."""
        return not any(node in self.inside if isinstance(node, Axis) else isinstance(node, Access)
                       for node in walk(term))


def _sum(expression: Expression) -> Sum:
    """An index as a sum; anything that is neither a sum nor a multiple is a term by itself."""
    match expression:
        case Constant():
            return {None: int(expression.value)}
        case Binary(operator="+" | "-"):
            right = _sum(expression.right)
            return _add(_sum(expression.left), right, 1 if expression.operator == "+" else -1)
        case Binary(operator="*", right=Constant(value=factor)):
            return _add({}, _sum(expression.left), int(factor))
        case Binary(operator="*", left=Constant(value=factor)):
            return _add({}, _sum(expression.right), int(factor))
    return {expression: 1}


def _add(left: Sum, right: Sum, factor: int) -> Sum:
    result = dict(left)
    for term, each in right.items():
        result[term] = result.get(term, 0) + factor * each
    return result
