"""How fast the accelerator's clock may run: the longest paths from register to register."""

from __future__ import annotations

import argparse
from typing import Any

from common import Column, Outcome, main
from fpga import show
from fpga.explain import Explainer
from fpga.netlist import Netlist
from fpga.paths import INPUT, OUTPUT, REGISTER, Timing
from fpga.synthesis import synthesize, yosys_version

from microtron.isa.config_files import load_config

AREA = {"lut": "LUT4|CCU2C", "register": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD",
        "lutram": "TRELLIS_DPR16X4"}


def area(cells: Netlist) -> dict[str, int]:
    """Cells by what they are; a carry cell takes the place of two LUTs."""
    found = {name: cells.count(kinds) for name, kinds in AREA.items()}
    return found | {"lut": found["lut"] + cells.count("CCU2C")}


def estimate(config: str, unit: str | None, count: int) -> Outcome:
    """The longest paths of a unit, or of the whole design, from synthesis alone."""
    design = synthesize(load_config(config), unit)
    explainer = Explainer(design.gates)
    rows, details = [], []
    for start in (REGISTER, INPUT):
        timing = Timing(design.cells, start)
        for end in (REGISTER, OUTPUT):
            for number, path in enumerate(timing.longest(end, count)):
                if not number:
                    rows.append(row(start, end, path.time, path.levels))
                details += show.lines(f"{start} → {end}", path, explainer)
    return Outcome(
        benchmark="clock", title=f"Longest paths of {unit or 'the accelerator'}, estimated",
        columns=(Column("start", "from"), Column("end", "to"), Column("ns", "ns", "{:.2f}".format),
                 Column("levels", "levels")),
        rows=rows, facts={"config": config, **area(design.cells), "yosys": yosys_version()},
        details=tuple(details))


def row(start: str, end: str, time: float, levels: int) -> dict[str, Any]:
    return {"start": start, "end": end, "ns": round(time, 2), "levels": levels}


def measure(options: argparse.Namespace) -> Outcome:
    return estimate(options.config, options.unit, options.paths)


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1000:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1 to 999")
    return int(text)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", default="tiny", help="a preset or a file of settings")
    parser.add_argument("--unit", metavar="PLACE", help="one unit alone: store, alu.issue …")
    parser.add_argument("--paths", type=positive, default=1, metavar="N",
                        help="show the N slowest of each sort (default: 1)")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
