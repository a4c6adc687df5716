"""Tables of areas: configurations × families of FPGAs, synthesized into a store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...base.checked_values import near_misses, quote
from ...base.errors import MicrotronError
from ...isa.config import Config
from ..points import FAMILIES, canonical, point_key
from ..records import Records
from .area_counts import KINDS
from .synthesis import Tell, area_question, measure_area

Row = dict[str, object]


def check_families(families: Sequence[str]) -> None:
    for each in families:
        if each not in FAMILIES:
            raise MicrotronError(f"--area is {quote(each)}, but must be one of "
                                 f"{', '.join(FAMILIES)}{near_misses(each, FAMILIES)}")


def collect_areas(store: Path, configs: Sequence[Config], families: Sequence[str], *,
                  points: int | None = None, seconds: float | None = None,
                  tell: Tell = lambda doing: None) -> int:
    """Synthesize what is not in the store yet, every family of a configuration before the next.
    How many were unknown."""
    begin, new = time.monotonic(), 0
    with Records(store) as records:
        for number, (config, family) in enumerate(_questions(configs, families, points)):
            if seconds is not None and time.monotonic() - begin >= seconds:
                break
            if records.find(area_question(config, family)) is None:
                place = f"synthesizing for {family}, {number} done, {new} of them now"
                measure_area(records, config, family, lambda unit, at=place: tell(  # type: ignore[misc]
                    f"{at}: {unit.rpartition('accelerator.')[2]}"))
                new += 1
    return new


def area_rows(store: Path, configs: Sequence[Config], families: Sequence[str],
              points: int | None = None, names: Mapping[Config, str] | None = None) -> list[Row]:
    """A row for each area that has been measured."""
    with Records(store) as records:
        found = [(config, family, records.find(area_question(config, family)))
                 for config, family in _questions(configs, families, points)]
    return [{"key": point_key(area_question(config, family)),
             "asked": canonical(area_question(config, family)), "family": family,
             "configuration": (names or {}).get(config, config.digest),
             **{f"config_{name}": value for name, value in config.to_dict().items()},
             **{kind: measured[kind] for kind in (*KINDS, "lutram")}}
            for config, family, measured in found if measured is not None]


def _questions(configs: Sequence[Config], families: Sequence[str],
               points: int | None) -> Iterator[tuple[Config, str]]:
    all_of_them = ((config, family) for config in configs for family in families)
    for number, each in enumerate(all_of_them):
        if points is not None and number >= points:
            return
        yield each
