"""The memory plan: a place for every tensor between layers, shared by those that never live
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....base.classes.dataclass import dataclass
from .dram_places import Grid


@dataclass(frozen=True)
class Life:
    """A tensor's bytes, and the layers from which it is written to which it is read last."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """Offsets by name, and what they take."""

    offsets: Mapping[str, int]
    peak: int                   # bytes
    total: int                  # of all tensors, if none shared a place


def plan_memory(lives: Mapping[str, Life], grid: Grid) -> Plan:
    """The largest tensors first, each at the lowest place that is free as long as it lives.
    Finding the best is hard; this is within a few per cent of the most that live at once."""
    offsets: dict[str, int] = {}
    order = sorted(lives, key=lambda name: (-lives[name].size, lives[name].first, name))
    for name in order:
        life = lives[name]
        meets = sorted((offsets[other], offsets[other] + lives[other].size) for other in offsets
                       if _meet(life, lives[other]))
        offsets[name] = _lowest_gap(life.size, meets, grid)
    peak = max((offsets[name] + life.size for name, life in lives.items()), default=0)
    return Plan(offsets, peak, sum(life.size for life in lives.values()))


def _meet(one: Life, other: Life) -> bool:
    return one.first <= other.last and other.first <= one.last


def _lowest_gap(size: int, taken: Sequence[tuple[int, int]], grid: Grid) -> int:
    """The lowest place between what is taken."""
    place = 0
    for begin, end in taken:
        if place + size <= begin:
            break
        place = max(place, grid.after(end, size))
    return place
