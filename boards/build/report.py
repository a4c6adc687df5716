"""What a build came to: clock and area from nextpnr's report, and the time that it took."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...base.checked_values import PlainData
from ...isa.config import Config
from ..facts.board import Board
from ..facts.errors import BoardError

# nextpnr's places, and what they count as: how many of ours each is.
COUNTED: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "ecp5": {"TRELLIS_COMB": ("lut", 1), "TRELLIS_FF": ("register", 1), "MULT18X18D": ("dsp", 1),
             "DP16KD": ("bram", 1)},
    "gowin": {"LUT4": ("lut", 1), "ALU": ("lut", 1), "DFF": ("register", 1),
              "MULT9X9": ("dsp", 1), "MULT18X18": ("dsp", 2), "MULT36X36": ("dsp", 8),
              "BSRAM": ("bram", 1)},
    "zynq": {"SLICE_FFX": ("register", 1), "DSP48E1_DSP48E1": ("dsp", 1),
             "RAMB18E1_RAMB18E1": ("bram", 0.5), "RAMBFIFO36E1_RAMBFIFO36E1": ("bram", 1),
             "RAMB36E1_RAMB36E1": ("bram", 1)},
}
# A LUT of Xilinx has two outputs, which nextpnr counts as places. One that holds something has a
# feature.
HOLDING = re.compile(r"^(\w+\.SLICE[LM]_X\d\.[A-D]LUT)\.", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class RoutedDesign:
    """What nextpnr reports of a routed design."""

    mhz: float                      # of what runs at the design's own clock
    used: Mapping[str, float]       # by kind of resource
    missed: Mapping[str, str]       # clocks of others, as that of a cable, that are too slow


@dataclass(frozen=True)
class ChosenClock:
    """The accelerator's clock as a build has chosen it."""

    hz: int
    margin: float                   # that it is below what routing reached; 0 if that is enough
    reached_mhz: float              # and what that was


def read_nextpnr_report(path: Path, flow: str, clock: str, features: Path | None = None,
                target_mhz: float | None = None) -> RoutedDesign:
    """The report that nextpnr wrote with --report; `clock` is part of the design's own clock's
    name. Without that, all are its own unless `target_mhz` says how fast that is. LUTs are counted
    among the `features` that are set, if there is a file of those."""
    found = json.loads(path.read_text(encoding="utf-8"))
    clocks = found["fmax"]
    if not any(clock in name for name in clocks):
        raise BoardError(f"{path}: there is no clock {clock!r} among {', '.join(clocks)}")
    # A clock that nothing was said of is to be as fast as the design; others are somebody else's.
    others = {name: each for name, each in clocks.items() if clock not in name or (
        target_mhz is not None and abs(each["constraint"] - target_mhz) > 0.1)}
    missed = {name: f"{each['achieved']:.1f} of {each['constraint']:g} MHz"
              for name, each in others.items() if each["achieved"] < each["constraint"]}
    own = {name: each["achieved"] for name, each in clocks.items() if name not in others}
    if not own:
        raise BoardError(f"{path}: no clock is to run at {target_mhz:g} MHz, but "
                         f"{', '.join(others)} are there")
    used: dict[str, float] = {}
    for place, each in found["utilization"].items():
        kind, weight = COUNTED[flow].get(place, (None, 0))
        if kind is not None:
            used[kind] = used.get(kind, 0) + each["used"] * weight
    if features is not None:
        used["lut"] = len(set(HOLDING.findall(features.read_text(encoding="utf-8"))))
    return RoutedDesign(mhz=round(min(own.values()), 2), used=used, missed=missed)


def summarize(board: Board, config: Config, name: str, placed: RoutedDesign | None,
            spent: Mapping[str, Mapping[str, float]],
            chosen: ChosenClock | None = None) -> dict[str, object]:
    """A build as one JSON object; `chosen` is the accelerator's clock, if it has one of its own."""
    found: PlainData = {
        "board": board.name, "part": board.part.name, "config": name, "digest": config.digest,
        "macs_per_cycle": config.macs_per_cycle,
        "processor_seconds": round(sum(each["processor_seconds"] for each in spent.values()), 1),
        "steps": {step: dict(each) for step, each in spent.items()}}
    if placed is not None:
        target = (chosen.hz if chosen else board.clock.system_hz) / 1e6
        if chosen is not None:
            found |= {"margin": chosen.margin, "reached_mhz": chosen.reached_mhz,
                      "system_mhz": board.clock.system_hz / 1e6}
        found |= {"mhz": placed.mhz, "target_mhz": target,
                  "meets_timing": placed.mhz >= target and not placed.missed,
                  **({"missed_clocks": dict(placed.missed)} if placed.missed else {}),
                  "used": dict(placed.used), "available": dict(board.part.resources),
                  "peak_gops": round(2 * config.macs_per_cycle * min(placed.mhz, target) / 1000, 2)}
    return found


def table_rows(found: PlainData) -> list[tuple[str, str]]:
    """The same for people."""
    rows = [("part", str(found["part"])), ("configuration", str(found["config"]))]
    if "mhz" in found:
        words = "meets" if found["mhz"] >= found["target_mhz"] else "misses"
        rows += [("clock", f"{found['mhz']:.1f} MHz, which {words} the {found['target_mhz']:.0f} "
                           "MHz that it runs at"),
                 *_margin_rows(found), *_seed_rows(found),
                 *((f"too slow: {name}", said)
                   for name, said in found.get("missed_clocks", {}).items()),
                 ("peak", f"{found['peak_gops']:.2f} GOPS")]
        rows += [(kind, f"{used:,g} of {found['available'][kind]:,} "
                        f"({used / max(found['available'][kind], 1):.0%})")
                 for kind, used in found["used"].items()]
    rows.append(("time", f"{found['processor_seconds']:,.0f} s of a processor"))
    return rows


def _margin_rows(found: PlainData) -> list[tuple[str, str]]:
    """How the accelerator's clock was chosen, if it has one of its own."""
    if "margin" not in found:
        return []
    below = f"{found['margin']:.0%} below the {found['reached_mhz']:.1f} MHz that routing reached"
    said = below if found["margin"] else "none: routing reached it"
    return [("margin", f"{said}; the system runs at {found['system_mhz']:g} MHz")]


def _seed_rows(found: PlainData) -> list[tuple[str, str]]:
    """What each seed came to, if there were several."""
    if "seeds" not in found:
        return []
    said = ", ".join(f"{each['mhz']:.1f}" if "mhz" in each else "not routed"
                     for each in found["seeds"])
    return [("seeds", f"{said} MHz; the median is {found['median_mhz']:.1f}")]
