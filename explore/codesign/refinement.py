"""Hill climbing with exact cycles, from points that are known exactly: one field is changed at a
time, or two where the first takes too many LUTs and the second saves some. Predictions only say in
which order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod

from ...base.errors import ConfigError
from ...compiler.errors import CompileError
from ...isa.config import Config
from ...isa.instructions import SCRATCHPADS
from ..records import Records
from ..sampling import CONFIG_FIELDS
from .board_budget import UnfitError
from .codesign_search import Exploration, Tell, describe, measure
from .correction import Correction, fit_correction
from .front import Point
from .workload import predicted_cycles

KNEE_ROOM = 1.05            # LUTs around the knee, in those of the knee


@dataclass
class Neighbour:
    """A configuration that is to be tried, and the cycles that are predicted for it."""

    config: Config
    cycles: float

    def rank(self, correction: Correction) -> tuple[float, int, str]:
        """The fewest cycles first; of equal ones those with the larger scratchpads."""
        size = sum(getattr(self.config, f"{buffer.name.lower()}_bytes") for buffer in SCRATCHPADS)
        return self.cycles * correction.factor(self.config), -size, self.config.digest


@dataclass
class Start:
    """Where a climb has come to, how many LUTs are allowed, and what is left to try around it."""

    best: Point
    most_luts: float
    left: list[Neighbour] = field(default_factory=list)

    def pop(self, tried: set[Config], correction: Correction) -> Config | None:
        """What is the most promising neighbour now."""
        self.left = [each for each in self.left if each.config not in tried]
        if not self.left:
            return None
        best = min(self.left, key=lambda each: each.rank(correction))
        return best.config


def starts_of(before: Point | None, knee: Point | None) -> list[Start]:
    """A baseline is to be beaten at no more LUTs. The knee may take some more, as its neighbours on
    the front do."""
    return [Start(each, room * each.area["lut"])
            for each, room in ((before, 1.0), (knee, KNEE_ROOM)) if each is not None]


def climb(found: Exploration, starts: list[Start], records: Records, *, count: int,
           until: float | None = None, tell: Tell = lambda doing: None,
           show: Callable[[Exploration], None] = lambda found: None) -> None:
    """Simulate so many neighbours of the starts, one start after the other in turns. What is better
    than where it comes from is where its climb goes on."""
    if not count:
        return
    for start in starts:
        start.left = neighbours(found, start.best, start.most_luts)
    tried = set(found.exact) | {start.best.config for start in starts}
    done, begin = 0, time.monotonic()
    while done < count and any(start.left for start in starts):
        for start in starts:
            if done >= count or (until is not None and time.monotonic() >= until):
                return
            config = start.pop(tried, fit_correction(found.predicted, found.exact))
            if config is None:
                continue
            tried.add(config)
            done += 1
            with suppress(CompileError):        # a layer does not fit
                point = measure(found, config, records)
                show(found)
                if point.cycles < start.best.cycles:
                    start.best, start.left = point, neighbours(found, point, start.most_luts)
            tell(f"refining: {describe(found, done, count, begin)}")


def neighbours(found: Exploration, point: Point, most: float) -> list[Neighbour]:
    """Configurations that differ in one field or two, fit, and take no more than so many LUTs."""
    cycles: dict[tuple[str, int], float] = {}   # of a field and its value
    for name, value in _changes(point.config):
        with suppress(ConfigError, CompileError):
            cycles[name, value] = _predicted(found, replace(point.config, **{name: value}))
    before = _predicted(found, point.config)
    ranked = []
    for changes in _sets_of_changes(found, point.config, list(cycles), most):
        with suppress(ConfigError, UnfitError):
            config = replace(point.config, **dict(changes))
            if found.question.budget.check(config)["lut"] <= most:
                ranked.append(Neighbour(config, before * prod(
                    cycles[change] / before for change in changes)))
    return ranked


def _sets_of_changes(found: Exploration, config: Config, changes: Sequence[tuple[str, int]],
                     most: float) -> Iterator[tuple[tuple[str, int], ...]]:
    """Each change that takes no more LUTs, and each other one with those that save any."""
    luts: dict[tuple[str, int], float] = {}
    for name, value in changes:
        with suppress(ConfigError):
            luts[name, value] = found.question.budget.area(replace(config, **{name: value}))["lut"]
    least = found.question.budget.area(config)["lut"]
    for change, number in luts.items():
        if number <= most:
            yield (change,)
        else:
            yield from ((change, other) for other, saved in luts.items()
                        if saved < least and other[0] != change[0])


def _changes(config: Config) -> Iterator[tuple[str, int]]:
    """Every field one value up and one down."""
    values = config.to_dict()
    for name, choices in CONFIG_FIELDS.items():
        some = list(choices(values))
        if name == "bus_bits" or values[name] not in some:
            continue
        at = some.index(values[name])
        yield from ((name, other) for other in some[max(0, at - 1):at] + some[at + 1:at + 2])


def _predicted(found: Exploration, config: Config) -> float:
    question = found.question
    return predicted_cycles(question.tasks, config, question.memory, question.model)
