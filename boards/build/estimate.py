"""How long a build will take, and how much memory: from records of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...isa.config import Config
from ..facts import fit
from ..facts.board import Board
from ..facts.toml_table import read_toml
from .flow import Build
from .steps import Command, Step
from .tools import NEXTPNR_ECP5, NEXTPNR_GOWIN, NEXTPNR_XILINX

RECORDS = Path(fit.__file__).with_name("builds.toml")
ROUTERS = (NEXTPNR_ECP5, NEXTPNR_GOWIN, NEXTPNR_XILINX)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One build that was made."""

    flow: str
    board: str
    config: str
    lut: int
    synthesis: float            # processor seconds
    route: float                # of one run of nextpnr
    memory_mib: int = 0         # of the largest tool; 0 if nobody recorded it


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a build is expected to take."""

    processor_seconds: float
    memory_mib: int | None
    routes: int
    record: Record              # what it was scaled from

    def __str__(self) -> str:
        memory = ("" if self.memory_mib is None
                  else f" and {self.memory_mib / 1024:.1f} GiB of memory")
        routes = "one route" if self.routes == 1 else f"{self.routes} routes"
        return (f"about {max(1, round(self.processor_seconds / 60)):,} processor minutes with "
                f"{routes}{memory}, by the build of {self.record.board} with "
                f"{self.record.config}; what is done already takes none")


@cache
def read_records() -> tuple[Record, ...]:
    return tuple(Record(**each) for each in read_toml(RECORDS)["build"])


def is_route(step: Step) -> bool:
    """Whether a step places and routes."""
    return isinstance(step.work, Command) and step.work.need in ROUTERS


def estimate_build(board: Board, config: Config, build: Build, seeds: int = 1) -> Estimate | None:
    """Scale the record with the most similar number of LUTs. None if nothing was built with this
    flow, or nobody knows the area of the configuration."""
    routes = seeds * sum(map(is_route, build.steps))
    known = fit.measured_resources(board, config)
    records = [each for each in read_records() if each.flow == board.flow]
    if not routes or known is None or not records:
        return None
    record = min(records, key=lambda each: (abs(each.lut - known["lut"]), each.board != board.name))
    scale = known["lut"] / record.lut
    return Estimate(processor_seconds=scale * (record.synthesis + routes * record.route),
                    memory_mib=round(scale * record.memory_mib) or None, routes=routes,
                    record=record)
