"""Windows that overlap share what they have in common: maxima and sums along one axis.

Windows of 5 elements next to each other have most of them in common. So the ALU combines the common
ones of several results first, then what each half of these results has in common, and so on:

    results of 4 windows    0 1 2 3 4 · · ·
                            · 1 2 3 4 5 · ·         3 4 in all of them:        copy 3, then 4
                            · · 2 3 4 5 6 ·         1 2 3 4 in the first two:  1 2; 3 4 5 6 in the
                            · · · 3 4 5 6 7         others: 5 6;               then 0, 5, 2 and 7

That takes 10 steps instead of 20. Every step adds one element to a result, so operands lie in two
buffers, and no other room is needed. Where the border is known, it is left out: windows that begin
at the first element follow from each other, one step each, and so do those that end at the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from ..form import blocks_of

REMEMBERED = 4096
LATENCY = 18                # cycles until the ALU's result can be its operand
LEAST = 8                   # cycles of an instruction
WORTH = 1.1                 # by this factor, more and smaller instructions have to be faster
SMALL = 3                   # taps: there, groups of other sizes gain a step in six at most
LARGEST = 256               # elements of windows that bounds look at closely
Inside = tuple[int, int]            # the first and the last element that are no border


class Walk(NamedTuple):
    """A loop around some steps: how far results and elements move."""

    extent: int
    result: int
    element: int


class Step(NamedTuple):
    """results[target] = results[source] combined with an element, or a copy of the element."""

    target: int
    source: int | None
    element: int
    loops: tuple[Walk, ...]

    @property
    def times(self) -> int:
        return prod(walk.extent for walk in self.loops)

    def cycles(self, vectors: int) -> int:
        """Cycles of the ALU for steps of so many vectors. It waits for its own results."""
        alike = prod(walk.extent for walk in self.loops if walk.result and (
            self.source in (None, self.target) or self.target - walk.result != self.source))
        return self.times // alike * max(alike * vectors, LATENCY if self.source is not None else
                                         LEAST)


@lru_cache(REMEMBERED)
def sliding_steps(results: int, taps: int, stride: int, inside: Inside | None = None, *,
                  shared: bool = True) -> tuple[Step, ...]:
    """The steps for so many windows of `taps` elements, `stride` elements apart. Those that lie
    inside share what they have in common, or not."""
    if inside is None:
        return tuple(_whole_windows(0, results, taps, stride, shared))
    (first, last), found = inside, list[Step]()
    windows = [(max(first, each * stride), min(last, each * stride + taps - 1))
               for each in range(results)]
    before = next((each for each in range(results) if each * stride > first), results)
    after = next((each for each in range(before, results)
                  if each * stride + taps - 1 >= last), results)
    found += _join_steps(_chain([*range(before)], windows, 1))
    found += _join_steps(_chain([*range(results - 1, after - 1, -1)], windows, -1))
    return (*found, *_whole_windows(before, after - before, taps, stride, shared))


@lru_cache(REMEMBERED)
def fastest_steps(results: int, taps: int, stride: int, inside: Inside | None,
                  vectors: int) -> tuple[Step, ...]:
    """Of several ways to combine windows, the one that takes the ALU the fewest cycles, if each
    step is one of so many vectors: it waits for its own results."""
    ways = [sliding_steps(results, taps, stride, inside, shared=shared) for shared in (True, False)]
    times = [sum(step.cycles(vectors) for step in steps) for steps in ways]
    least = min(times)
    if WORTH * max(vectors, LEAST) * sum(step.times for step in ways[0]) < least:
        return interleaved_steps(results, taps, stride, inside, blocks_of(LATENCY, vectors))
    return ways[times.index(least)]


@lru_cache(REMEMBERED)
def interleaved_steps(results: int, taps: int, stride: int, inside: Inside | None,
                      apart: int) -> tuple[Step, ...]:
    """The same steps one by one, in an order in which few need the result of another that is less
    than so many steps before: the ALU would wait for it."""
    left = [each for step in sliding_steps(results, taps, stride, inside)
            for each in _written_out(step)]
    found: list[Step] = []
    written: dict[int, int] = {}            # results, and when
    while left:
        ready = [*_ready(left)]
        chosen = max(ready, key=lambda place: (min(apart, _age(left[place], written, len(found))),
                                               -place))
        written[left[chosen].target] = len(found)
        found.append(left.pop(chosen))
    return tuple(found)


def _written_out(step: Step) -> Iterator[Step]:
    for indices in product(*(range(walk.extent) for walk in step.loops)):
        moved, element = (sum(index * walk[side] for index, walk in zip(
            indices, step.loops, strict=True)) for side in (1, 2))
        yield Step(step.target + moved, None if step.source is None else step.source + moved,
                   step.element + element, ())


def _ready(left: Sequence[Step]) -> Iterator[int]:
    """Steps before which no other one has to come: of those that write what they read, read what
    they write, or write the same."""
    read: set[int | None] = set()
    written: set[int | None] = set()
    for place, each in enumerate(left):
        if not {each.source, each.target} & written and each.target not in read:
            yield place
        read.add(each.source)
        written.add(each.target)


def _age(step: Step, written: dict[int, int], now: int) -> int:
    """How many steps ago the result was made that a step needs."""
    return now - written.get(step.target if step.source is None else step.source, -now - now)


def count_steps(steps: Iterable[Step]) -> tuple[int, int]:
    """How many steps copy an element, and how many combine one."""
    copies = sum(each.times for each in steps if each.source is None)
    return copies, sum(each.times for each in steps) - copies


def _chain(results: Sequence[int], windows: Sequence[Inside], towards: int) -> Iterator[Step]:
    """Windows that all end at the border on one side, and reach further `towards` the other: each
    follows from the one before it. Only for maxima, where an element may be combined twice."""
    ends = [windows[each][towards > 0] for each in results]     # on the other side
    for place, (result, end) in enumerate(zip(results, ends, strict=True)):
        if place == 0:
            start = windows[result][towards < 0]
            yield Step(result, None, start, ())
            if start != end:
                yield Step(result, result, start + towards, (Walk(abs(end - start), 0, towards),))
            continue
        new = abs(end - ends[place - 1])
        yield Step(result, results[place - 1], end - towards * max(0, new - 1), ())
        if new > 1:
            yield Step(result, result, end - towards * (new - 2), (Walk(new - 1, 0, towards),))


def _join_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Single steps that follow one another, a result and an element further each time, as one."""
    run: list[Step] = []
    for each in steps:
        if run and (each.loops or each.source != run[-1].target or any(
                now - then != turn for now, then, turn in zip(
                    (each.target, each.element), (run[-1].target, run[-1].element),
                    _moves(run, each), strict=True))):
            yield _joined(run)
            run = []
        if each.loops or each.source is None or each.source == each.target:
            yield each
        else:
            run.append(each)
    if run:
        yield _joined(run)


def _moves(run: Sequence[Step], each: Step) -> tuple[int, int]:
    """How far result and element move from one step of a run to the next."""
    if len(run) == 1:
        return each.target - run[0].target, each.element - run[0].element
    return run[1].target - run[0].target, run[1].element - run[0].element


def _joined(run: Sequence[Step]) -> Step:
    return run[0]._replace(loops=(Walk(len(run), *_moves(run, run[-1])),))


def _whole_windows(start: int, results: int, taps: int, stride: int,
                   shared: bool) -> Iterator[Step]:
    """Windows that lie inside, from a result on, in groups of as many as take the fewest steps."""
    while results:
        group = _first_group(results, taps, stride) if shared else 1
        groups = results // group
        yield from _groups(start, group, groups, taps, stride)
        start, results = start + groups * group, results % group


def _first_group(results: int, taps: int, stride: int) -> int:
    """The size of the first groups. If it is a power of two, halves of all groups are alike, so
    that few instructions do, which wait for each other less: others have to be worth it."""
    least, powers = (_best_group(results, taps, stride, powers) for powers in (False, True))
    return (least if taps > SMALL and WORTH * least[0] <= powers[0] else powers)[1]


@lru_cache(REMEMBERED)
def _best_group(results: int, taps: int, stride: int, powers: bool) -> tuple[int, int]:
    """Steps of so many windows, and the size of the first groups: a power of two, or any."""
    found = []
    for group in range(1, results + 1):
        if group == 1 or (taps > (group - 1) * stride and not (powers and group & group - 1)):
            own = taps - (group - 1) * stride + stride * _additions(group)
            rest = results % group
            found.append((results // group * own + (
                _best_group(rest, taps, stride, powers)[0] if rest else 0), group))
    return min(found)


@lru_cache(REMEMBERED)
def _additions(group: int) -> int:
    """Steps that tell the windows of a group apart, with stride 1: each half gets as many elements
    as the other has windows."""
    half = group // 2
    return group + _additions(half) + _additions(group - half) if half else 0


def _groups(start: int, group: int, groups: int, taps: int, stride: int) -> Iterator[Step]:
    """Groups of windows that share some elements, side by side. The first result of a half has
    what the half has in common."""
    def step(target: int, source: int | None, element: int, more: int, apart: int) -> Step:
        """For all halves of a level, each so many results apart, with so many elements."""
        return Step(start + target, None if source is None else start + source,
                    start * stride + element,
                    (Walk(more, 0, 1), Walk(groups * group // apart, apart, apart * stride)))

    def halve(size: int, places: Sequence[int], apart: int) -> Iterator[Step]:
        """Parts of so many windows at these places of a group, those of all groups that are so far
        apart at once."""
        half = size // 2
        left = size - half
        for place in places:
            new = place * stride + taps
            yield step(place + left, place, new, 1, apart)
            if left * stride > 1:
                yield step(place + left, place + left, new + 1, left * stride - 1, apart)
            yield step(place, place, (place + left - 1) * stride, half * stride, apart)

    first = (group - 1) * stride                # in all windows of a group, as those after it
    yield step(0, None, first, 1, group)
    if taps - first > 1:
        yield step(0, 0, first + 1, taps - first - 1, group)
    parts = {0: group}                          # where they begin, and how many windows they have
    while (size := max(parts.values())) > 1:
        places = [place for place, each in parts.items() if each == size]
        even = len(places) * size == group      # as far apart as those of the next group
        yield from halve(size, places[:1] if even else places, size if even else group)
        for place in places:
            parts[place], parts[place + size - size // 2] = size - size // 2, size // 2


@lru_cache(REMEMBERED)
def least_steps(kernel: tuple[int, int], stride: tuple[int, int],
                windows: tuple[int, int]) -> float:
    """Steps for each window that no way to combine its elements avoids.

    What a window is made from is a tree of parts: if a part is used twice, drop one use. Windows
    share a part only if they contain it, and there are no more of these than contain a rectangle
    of as many elements. So each part costs a window 1 / that number at least, and the cheapest tree
    is a bound: 2 2/3 for 3 × 3 windows side by side, where two passes take 3 steps."""
    (height, width), (down, across) = kernel, stride
    size = height * width
    if size > LARGEST:
        return 1.0

    def sharing(elements: int) -> int:
        return max(min((height - rows) // down + 1, windows[0])
                   * min((width - columns) // across + 1, windows[1])
                   for rows in range(1, height + 1) for columns in range(1, width + 1)
                   if rows * columns >= elements)

    least = [0.0, 0.0]
    for elements in range(2, size + 1):
        least.append(1 / sharing(elements) + min(
            least[part] + least[elements - part] for part in range(1, elements // 2 + 1)))
    return least[size]
