"""Synthesis with Yosys: the accelerator, or one unit of it, as cells of an FPGA. Cached."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import microtron
from microtron.base.cached_folder import cached_folder
from microtron.base.errors import MicrotronError
from microtron.isa.config import Config

from ..build.bare import NAME, TOP, to_rtlil
from ..build.debian_root import PART
from ..build.steps import module_identity
from ..ecp5.luts.save_luts import save_luts_in_file
from .families import Family
from .timing_netlist import Netlist, read_netlist

INSIDE = f"{TOP}.{NAME}."       # in front of units' places
CELLS = "cells.json"                # the netlist
# Runs in a process of its own, which gives the memory back and can be interrupted.
SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.stdin.read().splitlines():
    libyosys.run_pass(command, design)
"""


@dataclass(frozen=True)
class Synthesis:
    """A design before plain logic became LUTs, with lines of source, and after."""

    folder: Path                # with what Yosys wrote
    gates: Netlist
    cells: Netlist


def elaborate(config: Config, family: str) -> str:
    """The wrapped accelerator in Yosys's language, with lines of source on what they describe."""
    import amaranth

    from microtron.hw.targets import find_target
    from microtron.hw.top import Accelerator

    text = to_rtlil(Accelerator(config), find_target(family), emit_src=True)
    for folder in (Path(microtron.__file__).parent, Path(amaranth.__file__).parents[1]):
        text = text.replace(f"{folder}/", "")       # the same design, wherever it lies
    return text


def list_units(text: str) -> list[str]:
    """The units of an elaborated design, by their places: `store`, `store.reader` …"""
    return [name.removeprefix(INSIDE) for name in re.findall(r"^module \\(\S+)", text, re.M)
            if name.startswith(INSIDE)]


def check_unit(unit: str, text: str) -> None:
    if unit not in list_units(text):
        near = difflib.get_close_matches(unit, list_units(text), 3, 0.4)
        raise MicrotronError(f"there is no unit {unit[:60]!r}; units are named by their place, as "
                             f"{', '.join(near or ('store', 'store.reader'))}")


def synthesize(text: str, family: Family, unit: str | None = None) -> Synthesis:
    """A whole elaborated design, or one of its units."""
    folder, top = synthesized_folder(text, family, unit), _top(unit)
    return Synthesis(folder, read_netlist(folder / "gates.json", top),
                     read_netlist(folder / CELLS, top))


def synthesized_folder(text: str, family: Family, unit: str | None = None) -> Path:
    """Where it is with its netlists, which take seconds to read."""
    passes = synthesis_passes(family, unit)
    return cached_folder(
        PART, f"{family.part.replace('/', '-')}-{unit or 'whole'}",
        (text, *passes, yosys_version(), *(module_identity(save_luts_in_file.__module__)
                                           if family.die else ())),
        lambda folder: _synthesize(folder, text, passes, family),
        work=f"synthesizing {unit or 'the accelerator'}: seconds for a unit, minutes for large "
             "designs")


def _synthesize(folder: Path, text: str, passes: tuple[str, ...], family: Family) -> None:
    run_yosys(folder, text, passes)
    if family.die:
        save_luts_in_file(folder / CELLS)


def synthesis_passes(family: Family, unit: str | None = None) -> tuple[str, ...]:
    """What Yosys does to it."""
    top = _top(unit)
    command = f"{family.synthesis} -top {top}"
    # Yosys applies `no_rw_check` where it finds a memory and a register behind it, so they are
    # taken apart first; a design that has been through Verilog gives the same.
    before_luts = ((f"{command} -run begin:map_ffs", *family.registers) if family.registers
                   else (f"{command} -run begin:map_luts",))
    return (f"hierarchy -top {top}", "memory_nordff", *before_luts, f"select {top}",
            "write_json -selected gates.json", "select -clear",
            f"{command} -run map_luts:check", f"select {top}",
            f"write_json -selected {CELLS}")


def _top(unit: str | None) -> str:
    return TOP if unit is None else INSIDE + unit


def yosys_version() -> str:
    try:
        return version("pyosys")
    except PackageNotFoundError:
        raise MicrotronError("Yosys is missing; install it with: pip install pyosys") from None


def run_yosys(folder: Path, text: str, passes: tuple[str, ...]) -> None:
    (folder / "design.il").write_text(text, encoding="utf-8")
    commands = "\n".join(("read_rtlil design.il", *passes))
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, input=commands,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise MicrotronError(f"yosys failed: {' '.join(said.split())}")
