"""Which unit a cell belongs to, in a design whose units have been flattened into one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ..build.bare import NAME
from .families import Family
from .unit_synthesis import Synthesis

NOWHERE = ""                    # outside all units: the top module itself
JOINTS = "(joints)"             # what joins the units, and the wrapper around them


def innermost_unit(name: str, units: Collection[str]) -> str:
    """The innermost unit that a name such as `store.reader.fault[2]` belongs to."""
    place, _, _ = name.rpartition(".")
    while place and place not in units:
        place, _, _ = place.rpartition(".")
    return place


def find_owners(design: Synthesis, units: Collection[str]) -> dict[str, str]:
    """The unit of each cell: of its own name, of the net that it drives, or, as most LUTs have
    neither, the one that most of its readers belong to."""
    found: dict[str, str] = {}
    for cell in design.cells.cells.values():
        before = design.gates.cells.get(cell.name)
        if before is not None:          # a register, a memory, a multiplier or a carry chain
            named = design.gates.name_of_cell(replace(before, source=cell.source))
            if named is not None:
                found[cell.name] = innermost_unit(named, units)
    newest = list(found)
    while newest:                       # one level of logic nearer to where signals come from
        votes: dict[str, Counter[str]] = {}
        for name in newest:
            for bit in design.cells.cells[name].inputs.values():
                driver = design.cells.drivers.get(bit)
                if driver is not None and driver[0].name not in found:
                    votes.setdefault(driver[0].name, Counter())[found[name]] += 1
        newest = list(votes)
        found |= {name: each.most_common(1)[0][0] for name, each in votes.items()}
    return {name: found.get(name, NOWHERE) for name in design.cells.cells}


def truncate_unit(unit: str, depth: int) -> str:
    """A unit's place to some depth: `store.reader.steps` is in `store`."""
    return ".".join(unit.split(".")[:depth])


def owners_by_unit(design: Synthesis, units: Collection[str], depth: int) -> dict[str, str]:
    """The unit of each cell of a whole design, to some depth."""
    places = {f"{NAME}.{unit}" for unit in units} | {NAME}
    return {name: truncate_unit(place.removeprefix(NAME).removeprefix("."), depth) or JOINTS
            for name, place in find_owners(design, places).items()}


def area_by_unit(design: Synthesis, family: Family,
         owner: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Cells by the unit they belong to, and by what they count as."""
    found: dict[str, dict[str, float]] = {}
    for cell in design.cells.cells.values():
        for kind, pattern in family.cells.items():
            if re.fullmatch(pattern, cell.kind):
                counts = found.setdefault(owner[cell.name], dict.fromkeys(family.cells, 0))
                counts[kind] += family.weight(cell.kind, kind)
    return found
