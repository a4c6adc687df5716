"""Which unit a cell belongs to, in a design whose units have been flattened into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from . import delays
from .netlist import Bit
from .paths import in_order
from .synthesis import Synthesis

NOWHERE = ""                    # outside all units: the top module itself


def unit_of(name: str, units: Collection[str]) -> str:
    """The innermost unit that a name such as `store.reader.fault[2]` belongs to."""
    place, _, _ = name.rpartition(".")
    while place and place not in units:
        place, _, _ = place.rpartition(".")
    return place


def owners(design: Synthesis, units: Collection[str]) -> dict[str, str]:
    """The unit of each cell: of its own name, of the net that it drives, or, as most LUTs have
    neither, the one that most of its readers belong to."""
    netlist, gates = design.cells, design.gates.cells
    found: dict[str, str] = {}
    readers: dict[Bit, list[str]] = {}
    for cell in netlist.cells.values():
        for bit in cell.inputs.values():
            readers.setdefault(bit, []).append(cell.name)
        if cell.name in gates:          # registers, memories, multipliers and carry chains
            before = replace(gates[cell.name], source=cell.source)
            named = design.gates.name_of_cell(before)
            if named is not None:
                found[cell.name] = unit_of(named, units)
    registers = (cell for cell in netlist.cells.values() if delays.starts(cell) is not None)
    for cell in (*reversed(in_order(netlist)), *registers):
        if cell.name not in found:
            votes = Counter(found[reader] for bit in cell.outputs.values()
                            for reader in readers.get(bit, ()) if reader in found)
            found[cell.name] = votes.most_common(1)[0][0] if votes else NOWHERE
    return found


def shortened(unit: str, depth: int) -> str:
    """A unit's place to some depth: `store.reader.steps` is in `store`."""
    return ".".join(unit.split(".")[:depth])
