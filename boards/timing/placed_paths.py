"""Paths of a placed design, in terms of the netlist before it was packed."""

from __future__ import annotations

import re

from ..build.static_timing import Delays, Hop
from ..ecp5.replicate_registers import COPY
from .critical_paths import Path, Step
from .timing_netlist import Cell, Netlist

# nextpnr splits a carry cell of ECP5 into two halves, and a LUT RAM into four bits.
CARRY = re.compile(r"(.*)\$CCU2_COMB([01])")
LUT_RAM = re.compile(r"(.*)\$DPRAM_COMB(\d)")
READ_ADDRESS = {"D": "RAD[0]", "B": "RAD[1]", "C": "RAD[2]", "A": "RAD[3]"}


# Of Xilinx 7: cells that nextpnr made from a carry or a LUT RAM.
PART_OF = re.compile(r"(\$split\$.*|/\w+)$")
PLAIN = re.compile(r"LUT[1-6]|INV")


def drop_neighbour_wires(delays: Delays, cells: Netlist) -> None:
    """Drop wires into a LUT that the netlist does not have. On Xilinx 7, two LUTs may share a place
    and its pins, and nextpnr writes the inputs of both for each of them."""
    for (name, pin), ((driver, _), _) in list(delays.wires.items()):
        cell, source = cells.cells.get(name), PART_OF.sub("", driver)
        if cell is None or not PLAIN.fullmatch(cell.kind) or source not in cells.cells:
            continue
        bits = set(cell.inputs.values())
        if not bits & set(cells.cells[source].outputs.values()):
            del delays.wires[name, pin]


def to_path(hops: list[Hop], gates: Netlist) -> Path:
    """The path through cells that synthesis knew by these names; the others are plain logic."""
    first, *between, last = hops
    start, end = (_find_cell(hop.cell, gates) for hop in (first, last))
    steps = []
    for hop in between:
        cell, pin, out = _unpack(hop)
        if cell in gates.cells:
            steps.append(Step(gates.cells[cell], pin, out, hop.time))
    assert last.pin is not None, "a path ends at a pin"
    pin = "DI" if last.pin == "M" and end.kind == "TRELLIS_FF" else last.pin
    return Path(start, _unpack(first)[2], tuple(_join(steps)), end, pin, last.time,
                sum(hop.wire > 0 for hop in between))


def base_name(name: str) -> str:
    """The cell that nextpnr made another one from."""
    return re.sub(rf"\$(RAMW_\w+|DPRAM_COMB\d)$|{re.escape(COPY)}\d+$", "", name)


def _find_cell(name: str, gates: Netlist) -> Cell:
    base = base_name(name)
    return gates.cells.get(base, Cell(base, "?", None, {}, {}))


def _unpack(hop: Hop) -> tuple[str, str, str]:
    """Cell, pin and output by their names before packing."""
    pin, out = hop.pin or "", hop.out or ""
    if match := CARRY.fullmatch(hop.cell):
        half = match[2]
        return (match[1], "CIN" if pin == "FCI" else f"{pin}{half}",
                "COUT" if out == "FCO" else f"S{half}")
    if match := LUT_RAM.fullmatch(hop.cell):
        return match[1], READ_ADDRESS.get(pin, pin), f"DO[{match[2]}]"
    return hop.cell, pin, out


def _join(steps: list[Step]) -> list[Step]:
    """Both halves of a carry cell are one step again."""
    found: list[Step] = []
    for step in steps:
        if found and found[-1].cell is step.cell:
            found[-1] = Step(step.cell, found[-1].pin, step.out, step.time)
        else:
            found.append(step)
    return found
