"""Between two routes: the clock that the first one reached, less a margin, for the second one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..build.report import read_nextpnr_report
from ..facts.ecp5_pll import CELL, PllSettings, choose_settings
from ..facts.errors import BoardError

CLOCK = "accelerator_clk"           # what the net's name has in it, in netlists and reports
# Of the clock that the first route reached. Routes of one design differ; the second one has less to
# do than the first.
MARGIN = 0.03
CONSTRAINT = re.compile(rf'(FREQUENCY NET "\w*{CLOCK}\w*") \S+ MHz;')


def choose_clock(timing: str, netlist: str, pins: str, oscillator_hz: int,
                 to_netlist: str, to_pins: str, chosen: str) -> None:
    """The step between the two routes: the clock that the first one reached, less the margin, set
    in the netlist's PLL and in the constraints."""
    reached = read_nextpnr_report(Path(timing), "ecp5", CLOCK).mhz
    settings = choose_settings(oscillator_hz, reached * 1e6 * (1 - MARGIN))
    design = json.loads(Path(netlist).read_text(encoding="utf-8"))
    set_pll(design, settings)
    text, count = CONSTRAINT.subn(lambda found: f"{found[1]} {settings.hz / 1e6:.4f} MHz;",
                                  Path(pins).read_text(encoding="utf-8"))
    if count != 1:
        raise BoardError(f"{pins}: {count} lines say how fast {CLOCK} is to be, but one must")
    Path(to_netlist).write_text(json.dumps(design), encoding="utf-8")
    Path(to_pins).write_text(text, encoding="utf-8")
    Path(chosen).write_text(json.dumps({"hz": round(settings.hz), "margin": MARGIN,
                                        "first_mhz": reached}), encoding="utf-8")


def set_pll(design: dict[str, Any], settings: PllSettings) -> None:
    """Give the PLL of the accelerator's clock other dividers, in Yosys's JSON."""
    cells = [cell for module in design["modules"].values()
             for name, cell in module["cells"].items()
             if cell["type"] == "EHXPLLL" and name.split(".")[-1] == CELL]
    if len(cells) != 1:
        raise BoardError(f"the netlist has {len(cells)} PLLs named {CELL}, but must have one")
    cells[0]["parameters"] |= {
        name: value if isinstance(value, str) else f"{value:032b}"
        for name, value in settings.parameters.items()}
