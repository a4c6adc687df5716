"""Hill climbing with exact cycles, from points that are known exactly: one field is changed at a
time, as far as no more LUTs are taken. Predictions only say in which order. What networks gain as
a whole, since more of them stays on the chip, is seen by nothing that looks at their layers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ...base.errors import ConfigError
from ...compiler.errors import CompileError
from ...isa.config import Config
from ...isa.instructions import SCRATCHPADS
from ..records import Records
from ..sampling import CONFIG_FIELDS
from .board_budget import UnfitError
from .codesign_search import Exploration, Tell, measure
from .front import Point
from .workload import predicted_cycles


@dataclass
class Start:
    """Where a climb has come to, and what is left to try around it."""

    best: Point
    most_luts: float
    left: list[Config] = field(default_factory=list)


def climb(found: Exploration, starts: list[Point], records: Records, *, count: int,
           until: float | None = None, tell: Tell = lambda doing: None,
           show: Callable[[Exploration], None] = lambda found: None) -> None:
    """Simulate so many neighbours of the starts, one start after the other in turns. What is better
    than where it comes from is where its climb goes on."""
    climbs = [Start(start, start.area["lut"], neighbours(found, start)) for start in starts]
    tried = set(found.exact) | {start.config for start in starts}
    done = 0
    while done < count and any(climb.left for climb in climbs):
        for climb in climbs:
            if done >= count or (until is not None and time.monotonic() >= until):
                return
            config = next((each for each in climb.left if each not in tried), None)
            if config is None:
                climb.left = []
                continue
            climb.left = climb.left[climb.left.index(config) + 1:]
            tried.add(config)
            done += 1
            with suppress(CompileError):        # a layer does not fit
                point = measure(found, config, records)
                show(found)
                if point.cycles < climb.best.cycles:
                    climb.best, climb.left = point, neighbours(found, point, climb.most_luts)
            tell(f"refining: {done} of {count} done")


def neighbours(found: Exploration, point: Point, most_luts: float | None = None) -> list[Config]:
    """Configurations that differ in one field, fit, and take no more LUTs; those with the fewest
    predicted cycles first, of equal ones those with the larger scratchpads."""
    most = point.area["lut"] if most_luts is None else most_luts
    ranked = []
    for config in _changed(point.config):
        with suppress(UnfitError, CompileError):
            if found.question.budget.check(config)["lut"] <= most:
                ranked.append((_predicted(found, config), -_bytes(config), config.digest, config))
    return [config for *_, config in sorted(ranked, key=lambda each: each[:3])]


def _changed(config: Config) -> Iterator[Config]:
    """Every field one value up and one down, where that is legal."""
    values = config.to_dict()
    for name, choices in CONFIG_FIELDS.items():
        some = list(choices(values))
        if name == "bus_bits" or values[name] not in some:
            continue
        at = some.index(values[name])
        for other in some[max(0, at - 1):at] + some[at + 1:at + 2]:
            with suppress(ConfigError):
                yield replace(config, **{name: other})


def _predicted(found: Exploration, config: Config) -> float:
    question = found.question
    return predicted_cycles(question.tasks, config, question.memory, question.model)


def _bytes(config: Config) -> int:
    return sum(getattr(config, f"{buffer.name.lower()}_bytes") for buffer in SCRATCHPADS)
