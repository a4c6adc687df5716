"""Place and route with nextpnr: the clock that a design reaches, and when its signals settle."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from microtron.base.cached_folder import cached_folder
from microtron.base.errors import MicrotronError
from microtron.base.processes import run_tool_for

from ..build.debian_root import PART
from ..build.steps import module_identity
from ..build.tools import Tool
from ..ecp5.netlist_passes import run_passes_on_file
from .families import Family

TARGET = 150                    # MHz: more than is reached, so that every path is pressed
# Results of a run, as this program and the cache know them.
LOG, DELAYS, USED, SPENT = "log.txt", "delays.sdf", "report.json", "processor_seconds.txt"


@dataclass(frozen=True)
class PlacedRun:
    """What became of a design with one seed."""

    seed: int
    mhz: float
    used: dict[str, tuple[int, int]]    # of each kind of place: how many, and of how many
    delays: Path
    report: Path
    seconds: float | None       # of processor time; None if nobody has noted it


def nextpnr_options(family: Family, seed: int, *, route: bool = True) -> tuple[str, ...]:
    """What nextpnr is told."""
    return (*family.options, "--json", "cells.json", "--seed", str(seed), "--freq", str(TARGET),
            "--report", USED, "--sdf", DELAYS, "--log", LOG, "--quiet",
            *(() if route else ("--no-route",)))


def pass_identity(family: Family) -> tuple[str, ...]:
    """Our passes between synthesis and nextpnr."""
    return module_identity(run_passes_on_file.__module__) if family.die else ()


def place_and_route(design: Path, family: Family, tool: Tool, seed: int, *, route: bool,
                    seconds: int | None = None) -> PlacedRun:
    """Place the netlist `cells.json` of a folder, and route it unless an estimate is enough.
    nextpnr may take so many seconds of processor time, or OverTimeError is raised."""
    options = nextpnr_options(family, seed, route=route)
    doing = (f"{'placing and routing' if route else 'placing'} for {family.part} with seed "
             f"{seed}")

    def make(folder: Path) -> None:
        for name, text in family.files.items():
            (folder / name).write_text(text)
        if family.die:
            run_passes_on_file(design / "cells.json", folder / "cells.json", family.die)
        else:
            shutil.copy(design / "cells.json", folder)
        done, spent = run_tool_for(seconds, [*tool.command, *options], folder=folder, doing=doing)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-300:]
            raise MicrotronError(f"{family.tool.name} failed: {' '.join(said.split())}")
        (folder / "cells.json").unlink()
        (folder / SPENT).write_text(f"{spent:.2f}\n")
        _compress(folder / DELAYS)

    folder = cached_folder(
        PART, f"{design.name}-seed-{seed}",
        (design.name, tool.version, *options, *family.files.values(), *pass_identity(family)),
        make, work=f"{doing}: minutes, or hours if large")
    used = json.loads((folder / USED).read_text())["utilization"]
    spent = folder / SPENT
    return PlacedRun(seed, _clock((folder / LOG).read_text()),
                     {kind: (each["used"], each["available"]) for kind, each in used.items()
                      if each["used"]}, folder / f"{DELAYS}.gz", folder / USED,
                     float(spent.read_text()) if spent.exists() else None)


def _compress(path: Path) -> None:
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", 1) as compressed:
        shutil.copyfileobj(plain, compressed)
    path.unlink()


def _clock(log: str) -> float:
    """The last figure for our one clock: after routing, if there was any."""
    found = re.findall(r"Max frequency for clock.*?: ([\d.]+) MHz", log)
    if not found:
        raise MicrotronError("nextpnr has not said how fast the clock may be")
    return float(found[-1])
