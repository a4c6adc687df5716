"""Tables of clocks: configurations × seeds of nextpnr, placed and routed into a store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

from ...base.checked_values import near_misses, quote
from ...base.errors import MicrotronError
from ...isa.config import Config
from ..area.area_counts import KINDS
from ..area.area_model import shipped_area_model
from ..points import CLOCK_FAMILIES, canonical, point_key
from ..records import Records
from ..sampling import small_configs
from .routed_clock import Tell, clock_question, measure_clock

MOST_LUTS = 26_000          # that the area model expects of a sample: large ones route for hours
Row = dict[str, object]


def check_family(family: str) -> None:
    if family not in CLOCK_FAMILIES:
        raise MicrotronError(f"--clock is {quote(family)}, but must be "
                             f"{' or '.join(CLOCK_FAMILIES)}{near_misses(family, CLOCK_FAMILIES)}")


def clock_samples(count: int, seed: int, design: str, family: str) -> list[Config]:
    """`tiny`, then small configurations by a design."""
    return small_configs(count, seed, design, lambda config: shipped_area_model().predict(
        config, family)["lut"] <= MOST_LUTS)


@dataclass(frozen=True)
class ClockDesign:
    """What to place and route."""

    configs: Sequence[Config]
    family: str
    seeds: int = 1              # of nextpnr, from 1, for each configuration

    def questions(self, most: int | None = None) -> Iterator[tuple[Config, int]]:
        """Every configuration with one seed before the next."""
        return islice(((config, seed) for seed, config in product(
            range(1, self.seeds + 1), dict.fromkeys(self.configs))), most)


def collect_clocks(store: Path, design: ClockDesign, *, points: int | None = None,
                   seconds: float | None = None, tell: Tell = lambda doing: None) -> int:
    """Place and route what is not in the store yet. How many were unknown."""
    begin, new = time.monotonic(), 0
    with Records(store) as records:
        for number, (config, seed) in enumerate(design.questions(points)):
            if seconds is not None and time.monotonic() - begin >= seconds:
                break
            if records.find(clock_question(config, design.family, seed)) is None:
                place = f"{design.family}: {number} done, {new} of them now"
                measure_clock(records, config, design.family, seed,
                              lambda doing, at=place: tell(f"{at}: {doing}"))  # type: ignore[misc]
                new += 1
    return new


def clock_rows(store: Path, design: ClockDesign, points: int | None = None,
               names: Mapping[Config, str] | None = None) -> tuple[list[Row], list[str]]:
    """A row for each clock that has been measured, and why there is none for others that were
    tried."""
    rows: list[Row] = []
    failed = []
    with Records(store) as records:
        for config, seed in design.questions(points):
            asked = clock_question(config, design.family, seed)
            measured = records.find(asked)
            if measured is None:
                continue
            if "error" in measured:
                failed.append(str(measured["error"]))
                continue
            rows.append({
                "key": point_key(asked), "asked": canonical(asked), "family": design.family,
                "configuration": (names or {}).get(config, config.digest), "seed": seed,
                **{f"config_{name}": value for name, value in config.to_dict().items()},
                **{name: measured[name] for name in (
                    "mhz", *KINDS, "seconds", "part", "yosys", "nextpnr")}})
    return rows, failed
