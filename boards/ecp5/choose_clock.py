"""After the first route: its result if it reached the accelerator's clock, otherwise the clock that
it reached, less a margin, for a second one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from ...base.checked_values import PlainData
from ..build.report import read_nextpnr_report
from ..facts.ecp5_pll import CELL, PllSettings, choose_settings
from ..facts.errors import BoardError

CLOCK = "accelerator_clk"           # what the net's name has in it, in netlists and reports
# Of the clock that the first route reached. Routes of one design differ; the second one has less to
# do than the first.
MARGIN = 0.03
CONSTRAINT = re.compile(rf'(FREQUENCY NET "\w*{CLOCK}\w*") (\S+) MHz;')


def choose_clock(timing: str, config: str, netlist: str, pins: str, oscillator_hz: int,
                 to_netlist: str, to_pins: str, chosen: str, kept: tuple[str, str]) -> None:
    """The step after the first route. If that has reached the clock of the constraints, its
    configuration and timing are `kept`; those files are empty otherwise, and the clock that it
    reached, less the margin, is set in the netlist's PLL and in the constraints."""
    reached = read_nextpnr_report(Path(timing), "ecp5", CLOCK).mhz
    constraints = Path(pins).read_text(encoding="utf-8")
    wanted = [float(found[2]) for found in CONSTRAINT.finditer(constraints)]
    if len(wanted) != 1:
        raise BoardError(f"{pins}: {len(wanted)} lines say how fast {CLOCK} is to be, but one must")
    met = reached >= wanted[0]
    margin = 0.0 if met else MARGIN
    hz = wanted[0] * 1e6
    if met:
        for source, to in zip((netlist, pins, config, timing), (to_netlist, to_pins, *kept),
                              strict=True):
            shutil.copyfile(source, to)
    else:
        settings = choose_settings(oscillator_hz, reached * 1e6 * (1 - margin))
        hz = settings.hz
        _set_clock(Path(netlist), Path(to_netlist), settings)
        Path(to_pins).write_text(CONSTRAINT.sub(
            lambda found: f"{found[1]} {hz / 1e6:.4f} MHz;", constraints), encoding="utf-8")
        for name in kept:
            Path(name).write_bytes(b"")
    Path(chosen).write_text(json.dumps({"hz": round(hz), "margin": margin, "first_mhz": reached}),
                            encoding="utf-8")


def _set_clock(netlist: Path, to: Path, settings: PllSettings) -> None:
    design = json.loads(netlist.read_text(encoding="utf-8"))
    set_pll(design, settings)
    to.write_text(json.dumps(design), encoding="utf-8")


def set_pll(design: PlainData, settings: PllSettings) -> None:
    """Give the PLL of the accelerator's clock other dividers, in Yosys's JSON."""
    cells = [cell for module in design["modules"].values()
             for name, cell in module["cells"].items()
             if cell["type"] == "EHXPLLL" and name.split(".")[-1] == CELL]
    if len(cells) != 1:
        raise BoardError(f"the netlist has {len(cells)} PLLs named {CELL}, but must have one")
    cells[0]["parameters"] |= {
        name: value if isinstance(value, str) else f"{value:032b}"
        for name, value in settings.parameters.items()}
