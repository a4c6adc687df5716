"""Area of the accelerator after synthesis: LUTs, registers, multipliers and block RAM."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Column, Outcome, Row, main

from microtron.base.errors import MicrotronError
from microtron.boards.timing import cell_owners, families
from microtron.boards.timing.unit_synthesis import elaborate, list_units
from microtron.boards.timing.unit_synthesis import synthesize as synthesize_for_clock
from microtron.hw.targets import find_target
from microtron.hw.top import MODULE, verilog
from microtron.isa.config import PRESETS
from microtron.isa.config_files import load_config

# Synthesis passes of Yosys for each family, and the cells that count as what. On ECP5 they map to
# LUTs with ABC instead of ABC9: Yosys 0.70 cannot put ABC9's result back into a design as large as
# `base` (an assertion in rtlil.cc fails), and its synth_ecp5 ignores -noabc9.
FAMILIES = {
    "ecp5": ((f"synth_ecp5 -top {MODULE} -run :map_luts", "check -latchonly -assert",
              "abc -lut 4:7", "clean", f"synth_ecp5 -top {MODULE} -run map_cells:"),
             {**families.FAMILIES["ecp5"].cells, "latch": r".*LATCH.*"}),
    "xilinx": ((f"synth_xilinx -family xc7 -flatten -top {MODULE}",),
               {**families.FAMILIES["xc7"].cells, "latch": r"LD[CP]E"}),
}
PLACED_AS = {"ecp5": "ecp5", "xilinx": "xc7"}       # in clock.py
WEIGHTS = {"CCU2C": 2}       # a carry cell takes the place of two LUTs
SCRATCHPADS = r"(uop|inp|wgt|out|accumulator)\..*"
BLOCK_RAM = r".*(16KD|BLOCKRAM).*"
# Runs in a process of its own, which gives the memory back.
SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


def synthesize(text: str, family: str) -> tuple[dict[str, int], dict[str, str]]:
    """Cells of the synthesized design, by type, and what each memory has become."""
    passes, _ = FAMILIES[family]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.v"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, f"read_verilog {path}", *passes,
             "tee -o /dev/stderr stat"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MicrotronError(f"yosys failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return _cells(done.stderr), _memories(done.stdout)


def _cells(report: str) -> dict[str, int]:
    """Counts from the report, in which some versions write the name first."""
    report = report[max(0, report.rfind("Number of cells")):]
    found = {name: int(number) for number, name in re.findall(
        r"^\s+(\d+)\s+(?:[\d.e+]+\s+)?(\w+)\s*$", report, re.M)}
    return found | {name: int(number) for name, number in re.findall(
        r"^\s+(\w+)\s+(\d+)\s*$", report, re.M)}


def _memories(log: str) -> dict[str, str]:
    found = dict(re.findall(rf"^mapping memory {MODULE}\.(\S+) via (\S+)$", log, re.M))
    return found | {name: "registers" for name in re.findall(
        rf"^using FF mapping for memory {MODULE}\.(\S+)$", log, re.M)}


def check(found: dict[str, int], memories: dict[str, str], kinds: dict[str, str]) -> None:
    """No latch, no memory made of registers, and every scratchpad in block RAM."""
    latches = _count(found, kinds["latch"])
    if latches:
        raise MicrotronError(f"{latches} latches")
    scratchpads = [name for name in memories if re.fullmatch(SCRATCHPADS, name)]
    if len(scratchpads) < 5:
        raise MicrotronError(f"of the scratchpads only {scratchpads} were found")
    for name, became in memories.items():
        if became == "registers" or (name in scratchpads and not re.fullmatch(BLOCK_RAM, became)):
            raise MicrotronError(f"memory {name} became {became}")


def _count(found: dict[str, int], pattern: str) -> int:
    return sum(number * WEIGHTS.get(cell, 1) for cell, number in found.items()
               if re.fullmatch(pattern, cell))


def measure(options: argparse.Namespace) -> Outcome:
    return measure_whole(options) if options.units is None else by_unit(options)


def by_unit(options: argparse.Namespace) -> Outcome:
    """The area of each unit. The netlist is the one that `clock.py` places."""
    rows: list[Row] = []
    for name in options.configs:
        for short in options.families:
            text = elaborate(load_config(name), PLACED_AS[short])
            family = families.FAMILIES[PLACED_AS[short]]
            design = synthesize_for_clock(text, family)
            owner = cell_owners.owners_by_unit(design, list_units(text), options.units)
            areas = cell_owners.area_by_unit(design, family, owner)
            rows += [{"config": name, "family": short, "unit": unit, **areas[unit]}
                     for unit in sorted(areas, key=lambda unit: -areas[unit]["lut"])]
            rows.append({"config": name, "family": short, "unit": "all", **{
                kind: sum(each[kind] for each in areas.values()) for kind in family.cells}})
    columns = (Column("config", "config"), Column("family", "family"), Column("unit", "unit"),
               *(Column(kind, kind, "{:,g}".format)
                 for kind in ("lut", "register", "dsp", "bram", "lutram")))
    return Outcome(benchmark="area", title="Area of units after synthesis", columns=columns,
                   rows=rows)


def measure_whole(options: argparse.Namespace) -> Outcome:
    rows = []
    for name in options.configs:
        for family in options.families:
            text = verilog(load_config(name), find_target(PLACED_AS[family]))
            kinds = FAMILIES[family][1]
            try:
                found, memories = synthesize(text, family)
                check(found, memories, kinds)
            except MicrotronError as error:
                raise MicrotronError(f"{name} on {family}: {error}") from None
            rows.append({"config": name, "family": family,
                         **{kind: _count(found, pattern) for kind, pattern in kinds.items()},
                         "cells": found, "memories": memories})
    columns = (Column("config", "config"), Column("family", "family"),
               *(Column(kind, kind, "{:,}".format)
                 for kind in ("lut", "register", "dsp", "bram", "lutram")))
    return Outcome(benchmark="area", title="Area after synthesis", columns=columns, rows=rows)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("configs", nargs="*", default=list(PRESETS), metavar="config",
                        help="presets or files to synthesize (default: all presets)")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--units", type=int, choices=range(1, 10), metavar="DEPTH",
                        help="by unit, told apart to this depth: 1, or 2 for store.reader …")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
