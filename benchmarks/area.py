"""Area of the accelerator after synthesis: LUTs, registers, multipliers and block RAM."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Column, Outcome, main

from microtron.hw.top import MODULE, verilog
from microtron.isa.config import PRESETS
from microtron.isa.errors import MicrotronError

# Synthesis passes of Yosys for each family, and the cells that count as what.
FAMILIES = {
    "ecp5": (f"synth_ecp5 -top {MODULE}", {
        "lut": r"LUT4", "register": r"TRELLIS_FF", "dsp": r"MULT18X18D", "bram": r"DP16KD",
        "lutram": r"TRELLIS_DPR16X4", "latch": r".*LATCH.*"}),
    "xilinx": (f"synth_xilinx -family xc7 -flatten -top {MODULE}", {
        "lut": r"LUT[1-6]", "register": r"FD[RSCP]E", "dsp": r"DSP48E1", "bram": r"RAMB(18|36)E1",
        "lutram": r"RAM\d+.*", "latch": r"LD[CP]E"}),
}
# Runs in a process of its own, which gives the memory back.
SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


def cells(text: str, family: str) -> dict[str, int]:
    """Cells of the synthesized design, by type."""
    passes, _ = FAMILIES[family]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.v"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, f"read_verilog {path}", passes,
             "tee -o /dev/stderr stat"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MicrotronError(f"yosys failed: {(done.stderr or done.stdout).strip()[-300:]}")
    report = done.stderr[done.stderr.rindex("Number of cells") if "Number of cells" in done.stderr
                         else 0:]
    found: dict[str, int] = {}
    for number, name in re.findall(r"^\s+(\d+)\s+(?:[\d.e+]+\s+)?(\w+)\s*$", report, re.M):
        found[name] = int(number)
    for name, number in re.findall(r"^\s+(\w+)\s+(\d+)\s*$", report, re.M):
        found[name] = int(number)
    return found


def measure(options: argparse.Namespace) -> Outcome:
    rows = []
    for name in options.configs:
        text = verilog(PRESETS[name])
        for family in options.families:
            found = cells(text, family)
            row: dict[str, object] = {"config": name, "family": family}
            for kind, pattern in FAMILIES[family][1].items():
                row[kind] = sum(number for cell, number in found.items()
                                if re.fullmatch(pattern, cell))
            if row["latch"]:
                raise MicrotronError(f"{name} on {family}: {row['latch']} latches")
            rows.append(row)
    kinds = ("lut", "register", "dsp", "bram", "lutram")
    columns = (Column("config", "config"), Column("family", "family"),
               *(Column(kind, kind, "{:,}".format) for kind in kinds))
    return Outcome(benchmark="area", title="Area after synthesis", columns=columns, rows=rows)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("configs", nargs="*", default=list(PRESETS), metavar="config",
                        help=f"presets to synthesize: {', '.join(PRESETS)}")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
