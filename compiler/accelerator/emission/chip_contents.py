"""What the buffers on the chip hold, so that nothing is loaded or padded that is still there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field

from ....base.classes.dataclass import dataclass
from ...nest.nest import Buffer
from .scratchpads import Place

Content = tuple[int, ...]       # where in DRAM a copy of something that nobody writes starts
PASSING = 2                 # copies in which those contents of a period take turns that do not stay


@dataclass
class Contents:
    """The copies of every buffer, which are used in turn; each thread has its own."""

    places: Mapping[Buffer, Place]
    turns: dict[tuple[Buffer, int], int] = field(default_factory=dict)
    holds: dict[tuple[Buffer, int], list[Content | None]] = field(default_factory=dict)
    loaded: set[tuple[Buffer, int]] = field(default_factory=set)    # holds it already
    borders: dict[tuple[Buffer, int], Hashable] = field(default_factory=dict)   # by first tile

    def first_tile(self, buffer: Buffer, thread: int, content: Content | None) -> int:
        """Where a buffer is this time, if it gets this content."""
        place = self.places[buffer]
        first = place.of(thread, self._turn(buffer, thread, content))
        self._overwrite(buffer, range(first, first + place.tiles))
        return first

    def renew_border(self, buffer: Buffer, first: int, border: Hashable) -> bool:
        """Whether the copy of a buffer that begins with a tile has this border already. Afterwards
        it does."""
        known = border is not None and self.borders.get((buffer, first)) == border
        self.borders[buffer, first] = border
        return known

    def _turn(self, buffer: Buffer, thread: int, content: Content | None) -> int:
        """Which of its copies a buffer is: one that holds what is about to be loaded, which then
        need not be loaded again, or the one that has waited longest."""
        key, place = (buffer, thread), self.places[buffer]
        holds = self.holds.setdefault(key, [None] * place.copies)
        turn = self.turns.get(key, 0)
        if place.period:
            self.turns[key] = turn + 1
            turn = copy_of(turn, place.period, place.copies)
        if content is not None and content in holds:
            self.loaded.add(key)
            return holds.index(content)
        self.loaded.discard(key)
        if not place.period:
            self.turns[key] = (turn + 1) % place.copies
        holds[turn] = content
        return turn

    def _overwrite(self, buffer: Buffer, tiles: range) -> None:
        """Other buffers of the scratchpad that share these tiles no longer hold anything."""
        for (other, thread), holds in self.holds.items():
            if other is not buffer and other.scope == buffer.scope:
                place = self.places[other]
                for turn in range(place.copies):
                    first = place.of(thread, turn)
                    if first < tiles.stop and first + place.tiles > tiles.start:
                        holds[turn] = None
                        self.borders.pop((other, first), None)


def copy_of(run: int, period: int, copies: int) -> int:
    """The copy for a run of contents that come again after a period. All copies but two each have
    one of a period, as evenly spread as possible, so that loads are; the others take turns."""
    staying = copies - PASSING
    far, near = divmod(run, period)
    if near * staying % period < staying:
        return near * staying // period
    passed = run - far * staying - -(-near * staying // period)
    return staying + passed % PASSING
