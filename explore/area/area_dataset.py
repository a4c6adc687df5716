"""Tables of areas: configurations × families of FPGAs, synthesized into a store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path

from ...base.checked_values import near_misses, quote
from ...base.errors import MicrotronError
from ...boards.facts.board import RESOURCES, Part
from ...boards.facts.catalogue import load_boards
from ...boards.facts.fit import TARGET_OF_FLOW
from ...isa.config import Config
from ..points import FAMILIES, canonical, point_key
from ..records import Records
from .area_counts import KINDS
from .area_model import shipped_area_model
from .synthesis import Tell, area_question, measure_area

Row = dict[str, object]


def check_families(families: Sequence[str]) -> None:
    for each in families:
        if each not in FAMILIES:
            raise MicrotronError(f"--area is {quote(each)}, but must be one of "
                                 f"{', '.join(FAMILIES)}{near_misses(each, FAMILIES)}")


@dataclass(frozen=True)
class AreaDesign:
    """What to synthesize: configurations that were asked for, and samples, of which only those are
    taken that are expected to fit the largest part that a board of the family has."""

    configs: Sequence[Config]
    families: Sequence[str]
    samples: Sequence[Config] = ()

    @cached_property
    def rejected(self) -> list[tuple[Config, str, str]]:
        """Samples that would not fit, with the reason."""
        found = ((config, family, expected_shortage(config, family))
                 for config in self.samples if config not in self.configs
                 for family in self.families)
        return [(config, family, reason) for config, family, reason in found if reason]

    def questions(self, most: int | None = None) -> Iterator[tuple[Config, str]]:
        """Every family of a configuration before the next."""
        left_out = {(config, family) for config, family, _ in self.rejected}
        taken = ((config, family) for config in dict.fromkeys((*self.configs, *self.samples))
                 for family in self.families if (config, family) not in left_out)
        return islice(taken, most)


def expected_shortage(config: Config, family: str) -> str | None:
    """What the largest part of a family has too little of, by the area model; None if nothing."""
    part = largest_part(family)
    for kind, number in shipped_area_model().predict(
            config, family, part.resources["dsp"]).items():
        if number > part.resources[kind]:
            return (f"about {number:,.0f} {RESOURCES[kind]}, but {part.device} has "
                    f"{part.resources[kind]:,}")
    return None


@cache
def largest_part(family: str) -> Part:
    """Of those that boards have, the one with the most LUTs."""
    parts = [board.part for board in load_boards() if TARGET_OF_FLOW.get(board.flow) == family]
    return max(parts, key=lambda part: part.resources["lut"])


def collect_areas(store: Path, design: AreaDesign, *, points: int | None = None,
                  seconds: float | None = None, tell: Tell = lambda doing: None) -> int:
    """Synthesize what is not in the store yet. How many were unknown."""
    begin, new = time.monotonic(), 0
    with Records(store) as records:
        for number, (config, family) in enumerate(design.questions(points)):
            if seconds is not None and time.monotonic() - begin >= seconds:
                break
            if records.find(area_question(config, family)) is None:
                place = f"synthesizing for {family}, {number} done, {new} of them now"
                measure_area(records, config, family, lambda unit, at=place: tell(  # type: ignore[misc]
                    f"{at}: {unit.rpartition('accelerator.')[2]}"))
                new += 1
    return new


def area_rows(store: Path, design: AreaDesign, points: int | None = None,
              names: Mapping[Config, str] | None = None) -> tuple[list[Row], list[str]]:
    """A row for each area that has been measured, and why there is none for others that were
    tried."""
    with Records(store) as records:
        found = [(config, family, measured) for config, family in design.questions(points)
                 if (measured := records.find(area_question(config, family))) is not None]
    rows: list[Row] = [
        {"key": point_key(area_question(config, family)),
         "asked": canonical(area_question(config, family)), "family": family,
         "configuration": (names or {}).get(config, config.digest),
         **{f"config_{name}": value for name, value in config.to_dict().items()},
         **{kind: measured[kind] for kind in (*KINDS, "lutram")}}
        for config, family, measured in found if "error" not in measured]
    return rows, [str(measured["error"]) for *_, measured in found if "error" in measured]
