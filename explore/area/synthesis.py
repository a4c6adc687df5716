"""Measures the area of a configuration: real synthesis with Yosys, unit by unit.

Units that a store has already are not synthesized again, so a configuration that differs in a few
fields from others takes seconds. No logic is moved across units: `tiny` has a tenth more LUTs
than flattened on ECP5 and a seventh more on Xilinx 7, multipliers and block RAM are the same.
"""

from __future__ import annotations

import gc
import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from signal import SIGXCPU

from ...base.errors import MicrotronError
from ...base.processes import OverTimeError, seconds_of_children
from ...boards.build.cell_count import count_cells
from ...boards.build.steps import module_identity
from ...boards.ecp5.editable_netlist import Netlist
from ...boards.ecp5.luts.save_luts import save_luts
from ...boards.timing.families import FAMILIES, Family
from ...boards.timing.unit_synthesis import SCRIPT
from ...isa.config import Config
from ..points import AREA, UNIT, Json
from ..records import Record, Records, current_sources
from .netlist import Unit, split_units

# Yosys 0.70 cannot put back what ABC9 makes of some units; ABC maps all of them.
LUTS = {"ecp5": ("abc -lut 4:7", "clean", "synth_ecp5 -top {top} -run map_cells:check"),
        "xc7": ("abc -lut 6", "clean", "techmap -map +/xilinx/lut_map.v -D LUT_WIDTH=6")}
LUT_RAMS = {"ecp5": "TRELLIS_DPR16X4", "xc7": "RAM32M"}
MISSING = "areas need Amaranth and Yosys, which are not installed: pip install 'microtron[boards]'"
# Of processor time, which a busy machine does not stretch. The largest units that were seen take a
# minute; what takes five would not fit a part that boards have.
UNIT_SECONDS = 300
# Yosys, and each program that it starts, is ended by the system when its time is over.
LIMITED = f"""import resource
resource.setrlimit(resource.RLIMIT_CPU, ({{seconds}}, {{seconds}} + 5))
{SCRIPT}"""
Tell = Callable[[str], None]


def passes(name: str, top: str) -> list[str]:
    """What Yosys does to a unit, as a build does: from reading to cells."""
    family: Family = FAMILIES[name]
    command = f"{family.synthesis} -top {top}"
    before = ([f"{command} -run begin:map_ffs", *family.registers] if family.registers
              else [f"{command} -run begin:map_luts"])
    return [f"hierarchy -top {top}", "memory_nordff", *before,
            *(each.format(top=top) for each in LUTS[name])]


@cache
def tool_digest(family: str) -> str:
    """Stands for what decides the cells of a design beside its text: the tool and its passes."""
    try:
        tool = version("pyosys")
    except PackageNotFoundError:
        raise MicrotronError(MISSING) from None
    after = [module_identity(save_luts.__module__)] if FAMILIES[family].die else []
    return hashlib.sha256(json.dumps([tool, passes(family, "top"), *after]).encode()
                          ).hexdigest()[:16]


def measure_area(records: Records, config: Config, family: str,
                 tell: Tell = lambda doing: None) -> Json:
    """Cells of a configuration, and what they count as; from the store where it is known. `error`
    is why there are none: that a unit takes too long is recorded, too."""
    asked = area_question(config, family)
    known = records.find(asked)
    if known is not None:
        return known
    tell("elaboration")
    units = _elaborate(config, family)
    try:
        cells = _synthesize_missing(records, family, units, tell)
    except OverTimeError as error:
        failed = {"error": str(error)}
        records.add(Record(asked, current_sources(AREA), failed))
        return failed
    total: Counter[str] = Counter()
    for unit in units.values():
        total.update(cells[_key(unit)])
    measured = {**count_area(total, family), "cells": dict(sorted(total.items())),
                "units": len(units)}
    records.add(Record(asked, current_sources(AREA), measured))
    return measured


def area_question(config: Config, family: str) -> dict[str, object]:
    """What a store is asked for."""
    return {"kind": AREA, "config": config.explicit_fields(), "family": family,
            "tools": tool_digest(family)}


def count_area(cells: Mapping[str, int], family: str) -> dict[str, float]:
    """What cells count as: LUTs with those that LUT RAMs take, registers, multipliers, blocks."""
    return {**count_cells(cells, FAMILIES[family].flow),
            "lutram": cells.get(LUT_RAMS[family], 0)}


def _elaborate(config: Config, family: str) -> dict[str, Unit]:
    try:
        from ...boards.build.bare import config_to_rtlil
    except ImportError:
        raise MicrotronError(MISSING) from None
    with _paused_collection():           # a design is millions of objects, none of them garbage
        return split_units(config_to_rtlil(config, family))


@contextmanager
def _paused_collection() -> Iterator[None]:
    """No garbage collection meanwhile: it takes a third of the time of an elaboration."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _key(unit: Unit) -> str:
    return hashlib.sha256(f"{unit.top}\n{unit.text}".encode()).hexdigest()


def _synthesize_missing(records: Records, family: str, units: Mapping[str, Unit],
                        tell: Tell) -> dict[str, Mapping[str, int]]:
    """Cells of units by their keys. What was unknown is known to the store from now on."""
    found: dict[str, Mapping[str, int]] = {}
    for place, unit in units.items():
        key = _key(unit)
        if key in found:
            continue
        asked = {"kind": UNIT, "family": family, "tools": tool_digest(family), "text": key}
        known = records.find(asked)
        if known is None:
            tell(place)
            known = {"cells": run_yosys(unit, family, place)}
            records.add(Record(asked, current_sources(UNIT), known))
        cells = known["cells"]
        assert isinstance(cells, dict), "as it was recorded"
        found[key] = cells
    return found


def run_yosys(unit: Unit, family: str, place: str = "", seconds: int = 0) -> dict[str, int]:
    """Cells of a unit by type. Other units inside are left out."""
    limit = seconds or UNIT_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "unit.il").write_text(unit.text, encoding="utf-8")
        commands = ["read_rtlil unit.il", *passes(family, unit.top),
                    f"select {unit.top}", "write_json -selected cells.json"]
        before = seconds_of_children()
        done = subprocess.run([sys.executable, "-c", LIMITED.format(seconds=limit)], cwd=folder,
                              text=True, check=False, input="\n".join(commands),
                              capture_output=True)
        if done.returncode == -SIGXCPU or (     # Yosys itself, or a program that it started
                done.returncode and seconds_of_children() - before >= limit):
            raise OverTimeError(f"{place or unit.top} takes more than {limit} s of processor time "
                                f"to synthesize")
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise MicrotronError(f"yosys failed: {said}")
        design = json.loads(Path(folder, "cells.json").read_text(encoding="utf-8"))
    netlist = Netlist(design["modules"][unit.top])
    if FAMILIES[family].die:
        save_luts(netlist)              # as builds do
    cells = Counter(cell["type"] for cell in netlist.cells.values())
    return {name: number for name, number in cells.items()
            if not name.startswith(("unit", "$"))}
