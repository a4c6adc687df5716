"""How fast the accelerator's clock may run: the longest paths from register to register."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from common import Column, Outcome, Row, main

from microtron.base.errors import MicrotronError
from microtron.boards.build.static_timing import PlacedTiming
from microtron.boards.build.tools import find_tool
from microtron.boards.timing import path_text, sdf
from microtron.boards.timing.cell_owners import area_by_unit, owners_by_unit
from microtron.boards.timing.critical_paths import INPUT, OUTPUT, REGISTER, Path, Timing
from microtron.boards.timing.explain_path import Explainer
from microtron.boards.timing.families import FAMILIES, Family
from microtron.boards.timing.place_and_route import place_and_route
from microtron.boards.timing.placed_paths import base_name, drop_neighbour_wires, to_path
from microtron.boards.timing.unit_synthesis import (
    Synthesis,
    check_unit,
    elaborate,
    list_units,
    synthesize,
    yosys_version,
)
from microtron.isa.config_files import load_config

ESTIMATED = "ecp5"              # whose delays before placing are in boards/timing/ecp5_delays.py
Where = TypeVar("Where")


def of_unit(text: str, unit: str, count: int) -> Outcome:
    """The longest paths of a unit alone, from synthesis."""
    check_unit(unit, text)
    design = synthesize(text, FAMILIES[ESTIMATED], unit)
    explainer = Explainer(design.gates)
    rows, details = [], []
    for start in (REGISTER, INPUT):
        timing = Timing(design.cells, start)
        for end in (REGISTER, OUTPUT):
            for number, path in enumerate(timing.longest(end, count)):
                if not number:
                    rows.append({"start": start, "end": end, **_numbers(path, explainer)})
                details += path_text.format_path(f"{start} → {end}", path, explainer)
    columns = (Column("start", "from"), Column("end", "to"), Column("ns", "ns", "{:.2f}".format),
               Column("levels", "levels"))
    whole = area_by_unit(design, FAMILIES[ESTIMATED], dict.fromkeys(design.cells.cells, unit))
    return Outcome(benchmark="clock", title=f"Longest paths of {unit}, estimated", columns=columns,
                   rows=rows, details=tuple(details),
                   facts={**whole.get(unit, {}), "yosys": yosys_version()})


def _numbers(path: Path, explainer: Explainer) -> Row:
    return {"ns": round(path.time, 2), "levels": path.levels,
            "path": path_text.path_json(path, explainer)}


def estimate_clock(text: str, depth: int) -> Outcome:
    """The longest path that ends in each unit, and the unit's area, from synthesis."""
    design = synthesize(text, FAMILIES[ESTIMATED])
    owner = owners_by_unit(design, list_units(text), depth)
    timing = Timing(design.cells)
    slowest = slowest_of_units(((end, end.time) for end in timing.ends()),
                               lambda end: owner[end.cell.name] if end.cell else "")
    paths = {unit: timing.path_to(end) for unit, end in slowest.items()}
    return per_unit("Longest path into each unit, estimated", design, FAMILIES[ESTIMATED], owner,
                    paths, {})


def route_clock(text: str, family: Family, seeds: range, depth: int, *, route: bool) -> Outcome:
    """The same after place and route, with the best of several seeds."""
    tool = find_tool(family.tool)
    design = synthesize(text, family)
    owner = owners_by_unit(design, list_units(text), depth)
    runs = [place_and_route(design.folder, family, tool, seed, route=route) for seed in seeds]
    best = max(runs, key=lambda run: run.mhz)
    delays = sdf.read_sdf(best.delays)
    if family.shares_pins:
        drop_neighbour_wires(delays, design.cells)
    timing = PlacedTiming(delays)
    slowest = slowest_of_units(timing.ends(), lambda end: owner.get(base_name(end[0]), "?"))
    paths = {unit: to_path(timing.path_to(end), design.gates) for unit, end in slowest.items()}
    facts = {"part": family.part, "MHz": best.mhz, "routed": route,
             "MHz by seed": ", ".join(f"{run.seed}: {run.mhz:.1f}" for run in runs),
             "used": ", ".join(f"{kind} {used} of {there}"
                               for kind, (used, there) in best.used.items()),
             "tool": tool.version}
    title = f"{best.mhz:.1f} MHz {'routed' if route else 'placed'} on {family.part}: longest paths"
    return per_unit(title, design, family, owner, paths, facts)


def slowest_of_units(ends: Iterable[tuple[Where, float]],
                     unit_of: Callable[[Where], str]) -> dict[str, Where]:
    """The end of each unit that is reached last, the slowest unit first."""
    found: dict[str, tuple[Where, float]] = {}
    for end, time in ends:
        unit = unit_of(end)
        if unit not in found or time > found[unit][1]:
            found[unit] = end, time
    return {unit: end for unit, (end, _) in sorted(found.items(), key=lambda each: -each[1][1])}


def per_unit(title: str, design: Synthesis, family: Family, owner: dict[str, str],
             paths: dict[str, Path], facts: dict[str, object]) -> Outcome:
    explainer = Explainer(design.gates)
    areas = area_by_unit(design, family, owner)
    rows = [{"unit": unit, **_numbers(path, explainer),
             **areas[unit]}
            for unit, path in paths.items() if unit in areas]
    details = [line for unit, path in paths.items()
               for line in path_text.format_path(unit, path, explainer)]
    columns = (Column("unit", "unit"), Column("ns", "ns", "{:.2f}".format),
               Column("levels", "levels"),
               *(Column(kind, kind, "{:,g}".format) for kind in family.cells))
    totals = {kind: sum(each[kind] for each in areas.values()) for kind in family.cells}
    return Outcome(benchmark="clock", title=title, columns=columns, rows=rows,
                   details=tuple(details), facts={**facts, **totals, "yosys": yosys_version()})


def measure(options: argparse.Namespace) -> Outcome:
    if options.unit is not None and options.family is not None:
        raise MicrotronError("--unit is for estimates; a unit alone is not placed, so leave out "
                             "--family")
    text = elaborate(load_config(options.config), options.family or ESTIMATED)
    if options.unit is not None:
        return of_unit(text, options.unit, options.paths)
    if options.family is None:
        return estimate_clock(text, options.depth)
    return route_clock(text, FAMILIES[options.family],
                       range(options.seed, options.seed + options.seeds), options.depth,
                       route=not options.no_route)


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
    parser.add_argument("--family", choices=list(FAMILIES),
                        help="place and route for this family (default: an estimate for ecp5)")
    parser.add_argument("--seeds", type=positive, default=1, metavar="N",
                        help="with --family: take the best of N runs (default: 1)")
    parser.add_argument("--seed", type=positive, default=1, metavar="N",
                        help="with --family: the first of these runs' seeds (default: 1)")
    parser.add_argument("--no-route", action="store_true",
                        help="with --family: stop when placed, and estimate the wires")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))     # tools stop too
    main(measure, __doc__ or "", arguments)
