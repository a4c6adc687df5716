"""Measures the clock that a configuration reaches: the accelerator alone, synthesized, placed and
routed, as `benchmarks/clock.py` does, with which it shares the cache of placed designs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache

from ...base.errors import MicrotronError
from ...base.processes import OverTimeError
from ...boards.build.report import read_nextpnr_report
from ...boards.build.tools import Tool, find_tool
from ...boards.timing.families import FAMILIES
from ...boards.timing.place_and_route import nextpnr_options, pass_identity, place_and_route
from ...boards.timing.unit_synthesis import (
    elaborate,
    synthesis_passes,
    synthesized_folder,
    yosys_version,
)
from ...isa.config import Config
from ..points import CLOCK, Json
from ..records import Record, Records, current_sources

MISSING = ("clocks need Amaranth and Yosys, which are not installed: "
           "pip install 'microtron[boards]'")
# Of processor time, for nextpnr. What routes at all has taken minutes; what does not goes on for
# hours with wires that have no place.
ROUTER_SECONDS = 1800
Tell = Callable[[str], None]


def clock_question(config: Config, family: str, seed: int) -> dict[str, object]:
    """What a store is asked for. The seed is nextpnr's."""
    return {"kind": CLOCK, "config": config.explicit_fields(), "family": family, "seed": seed,
            "tools": tools_digest(family)}


@cache
def tools_digest(family: str) -> str:
    """Stands for what decides the clock of a design beside its text: tools and their options."""
    described = FAMILIES[family]
    parts = (yosys_version(), *synthesis_passes(described), _nextpnr(family).version,
             *nextpnr_options(described, 0), *described.files.values(), *pass_identity(described))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@cache
def _nextpnr(family: str) -> Tool:
    return find_tool(FAMILIES[family].tool)


def measure_clock(records: Records, config: Config, family: str, seed: int,
                  tell: Tell = lambda doing: None) -> Json:
    """The clock of a configuration and what it takes of the part; from the store where it is
    known. `error` is why there is none: that routing takes too long is recorded, too."""
    asked = clock_question(config, family, seed)
    known = records.find(asked)
    if known is not None:
        return known
    try:
        measured = _route(config, family, seed, tell)
    except OverTimeError as error:
        measured = {"error": str(error)}
    records.add(Record(asked, current_sources(CLOCK), measured))
    return measured


def _route(config: Config, family: str, seed: int, tell: Tell) -> Json:
    described, tool = FAMILIES[family], _nextpnr(family)
    tell("elaboration")
    try:
        text = elaborate(config, family)
    except ImportError:
        raise MicrotronError(MISSING) from None
    tell("synthesis")
    design = synthesized_folder(text, described)
    tell(f"placing and routing with seed {seed}")
    run = place_and_route(design, described, tool, seed, route=True, seconds=ROUTER_SECONDS)
    used = read_nextpnr_report(run.report, described.flow, "").used
    return {"mhz": run.mhz, **used, "seconds": run.seconds, "part": described.part,
            "yosys": yosys_version(), "nextpnr": tool.version}
