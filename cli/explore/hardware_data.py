"""What `microtron dataset` does for configurations alone: tables of areas and of clocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ..files import say

if TYPE_CHECKING:
    from ...isa.config import Config

AREA_SAMPLES, CLOCK_SAMPLES = 128, 30       # unless configurations are given


@dataclass(frozen=True)
class Request:
    """What both tables are asked for."""

    output: Path
    store: Path
    configs: Sequence[str]
    random_configs: int
    points: int | None
    seconds: float | None
    as_json: bool

    @cached_property
    def named(self) -> Mapping[Config, str]:
        from ...isa.config_files import load_config

        return {load_config(each): each for each in self.configs}

    def samples(self, number: int) -> int:
        """How many to draw: so many unless others are given."""
        return self.random_configs or (0 if self.configs else number)

    def write(self, rows: Sequence[Mapping[str, object]], failed: Sequence[str], new: int,
              **facts: object) -> None:
        """The table, and what there is to say of it for programs."""
        from ...runtime.reports.table_files import write_rows

        if not rows:
            raise MicrotronError(failed[0] if failed else
                                 "nothing was measured: the budget is too small")
        write_rows(self.output, [dict(row) for row in rows])
        if self.as_json:
            typer.echo(json.dumps({
                "file": str(self.output), "records": str(self.store), "rows": len(rows),
                "configurations": len({row["configuration"] for row in rows}), "measured": new,
                "failed": failed, **facts}))


def measure_areas(asked: Request, families: list[str]) -> None:
    """The table of areas."""
    from ...base.progress import report_progress
    from ...explore.area.area_dataset import (
        AreaDesign,
        area_rows,
        check_families,
        collect_areas,
    )
    from ...explore.sampling import star_configs

    check_families(families)
    drawn = asked.samples(AREA_SAMPLES)
    design = AreaDesign(list(asked.named), families, star_configs(drawn) if drawn else [])
    with report_progress("drawing samples") as tell:
        new = collect_areas(asked.store, design, points=asked.points, seconds=asked.seconds,
                            tell=tell)
    rows, failed = area_rows(asked.store, design, asked.points, asked.named)
    asked.write(rows, failed, new, rejected=[
        {"configuration": config.explicit_fields(), "family": family, "reason": reason}
        for config, family, reason in design.rejected])
    if asked.as_json:
        return
    say(f"{asked.output}: {len(rows)} areas of {_configurations(rows)} configurations; {new} "
        f"synthesized now")
    if failed:
        say(f"{len(failed)} without an area, the first because {failed[0]}")
    if design.rejected:
        _, family, reason = design.rejected[0]
        say(f"{len(design.rejected)} samples left out since they would not fit, the first for "
            f"{family}: {reason}")


def measure_clocks(asked: Request, family: str, seeds: int, design: str, seed: int) -> None:
    """The table of clocks."""
    from ...base.progress import report_progress
    from ...explore.clock.clock_dataset import (
        ClockDesign,
        check_family,
        clock_rows,
        clock_samples,
        collect_clocks,
    )

    check_family(family)
    drawn = asked.samples(CLOCK_SAMPLES)
    samples = clock_samples(drawn, seed, design, family) if drawn else []
    chosen = ClockDesign([*asked.named, *samples], family, seeds)
    with report_progress("drawing samples") as tell:
        new = collect_clocks(asked.store, chosen, points=asked.points, seconds=asked.seconds,
                             tell=tell)
    rows, failed = clock_rows(asked.store, chosen, asked.points, asked.named)
    asked.write(rows, failed, new)
    if asked.as_json:
        return
    say(f"{asked.output}: {len(rows)} clocks of {_configurations(rows)} configurations; {new} "
        f"placed and routed now")
    if failed:
        say(f"{len(failed)} without a clock, the first because {failed[0]}")


def _configurations(rows: Sequence[Mapping[str, object]]) -> int:
    return len({row["configuration"] for row in rows})
