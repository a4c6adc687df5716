"""How fast the accelerator's clock may run: the longest paths from register to register."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from common import Column, Outcome, main
from fpga import show
from fpga.explain import Explainer
from fpga.netlist import Netlist
from fpga.owners import owners, shortened
from fpga.paths import INPUT, OUTPUT, REGISTER, End, Timing
from fpga.synthesis import check_unit, elaborate, synthesize, units, yosys_version
from fpga.wrapper import NAME

from microtron.isa.config_files import load_config

AREA = {"LUT4": "lut", "CCU2C": "lut", "TRELLIS_FF": "register", "MULT18X18D": "dsp",
        "DP16KD": "bram", "TRELLIS_DPR16X4": "lutram"}
WEIGHTS = {"CCU2C": 2}          # a carry cell takes the place of two LUTs
AREAS = tuple(dict.fromkeys(AREA.values()))


def area(cells: Netlist, owner: dict[str, str] | None = None) -> dict[str, Counter[str]]:
    """Cells by the unit they belong to, and by what they are."""
    found: dict[str, Counter[str]] = {}
    for cell in cells.cells.values():
        if cell.kind in AREA:
            unit = owner[cell.name] if owner else ""
            found.setdefault(unit, Counter())[AREA[cell.kind]] += WEIGHTS.get(cell.kind, 1)
    return found


def of_unit(text: str, unit: str, count: int) -> Outcome:
    """The longest paths of a unit alone, from synthesis."""
    check_unit(unit, text)
    design = synthesize(text, unit)
    explainer = Explainer(design.gates)
    rows, details = [], []
    for start in (REGISTER, INPUT):
        timing = Timing(design.cells, start)
        for end in (REGISTER, OUTPUT):
            for number, path in enumerate(timing.longest(end, count)):
                if not number:
                    rows.append({"start": start, "end": end, "ns": round(path.time, 2),
                                 "levels": path.levels, "path": show.as_json(path, explainer)})
                details += show.lines(f"{start} → {end}", path, explainer)
    columns = (Column("start", "from"), Column("end", "to"), Column("ns", "ns", "{:.2f}".format),
               Column("levels", "levels"))
    return Outcome(benchmark="clock", title=f"Longest paths of {unit}, estimated", columns=columns,
                   rows=rows, details=tuple(details),
                   facts={**area(design.cells)[""], "yosys": yosys_version()})


def of_all(text: str, depth: int) -> Outcome:
    """The longest path that ends in each unit, and the unit's area, from synthesis."""
    design = synthesize(text)
    explainer, timing = Explainer(design.gates), Timing(design.cells)
    places = {f"{NAME}.{unit}" for unit in units(text)} | {NAME}
    owner = {name: shortened(place.removeprefix(NAME).removeprefix("."), depth) or "(joints)"
             for name, place in owners(design, places).items()}
    slowest: dict[str, End] = {}
    for end in timing.ends():
        assert end.cell is not None, "these are registers"
        unit = owner[end.cell.name]
        if unit not in slowest or end.time > slowest[unit].time:
            slowest[unit] = end
    areas = area(design.cells, owner)
    rows: list[dict[str, Any]] = []
    details: list[str] = []
    for unit, end in sorted(slowest.items(), key=lambda each: -each[1].time):
        path = timing.path_to(end)
        rows.append({"unit": unit, "ns": round(path.time, 2), "levels": path.levels,
                     **{kind: areas[unit][kind] for kind in AREAS},
                     "path": show.as_json(path, explainer)})
        details += show.lines(unit, path, explainer)
    columns = (Column("unit", "unit"), Column("ns", "ns", "{:.2f}".format),
               Column("levels", "levels"), *(Column(kind, kind, "{:,}".format) for kind in AREAS))
    totals = {kind: sum(each[kind] for each in areas.values()) for kind in AREAS}
    return Outcome(benchmark="clock", title="Longest path into each unit, estimated",
                   columns=columns, rows=rows, details=tuple(details),
                   facts={**totals, "yosys": yosys_version()})


def measure(options: argparse.Namespace) -> Outcome:
    text = elaborate(load_config(options.config))
    if options.unit is None:
        return of_all(text, options.depth)
    return of_unit(text, options.unit, options.paths)


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1000:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1 to 999")
    return int(text)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", default="tiny", help="a preset or a file of settings")
    parser.add_argument("--unit", metavar="PLACE", help="one unit alone: store, alu.issue …")
    parser.add_argument("--paths", type=positive, default=1, metavar="N",
                        help="with --unit: show the N slowest of each sort (default: 1)")
    parser.add_argument("--depth", type=positive, default=1, metavar="N",
                        help="without --unit: tell units apart to this depth (default: 1)")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
