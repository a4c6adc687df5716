"""Takes an elaborated design apart into units that are synthesized alone.

Many configurations share most of their units, and one has many equal lanes and rows. Names of
modules and numbers of wires are replaced by their order of appearance, so that equal units have
equal text. What is inside a unit is flattened; what belongs to another one is a black box there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEPTH = 3                   # parts of the name of a unit, as in top.accelerator.load
REPEATED = re.compile(r".*\.(row|lane)_\d+")        # units of their own, at any depth
CELL = re.compile(r"^  cell \\(\S+) ", re.M)
MODULE_NAME = re.compile(r"\\(top(?:\.[\w$.]+)?)(?=\s)")
NUMBER = re.compile(r"\$(\d+)")
PORT = re.compile(r"^  wire .*\b(?:input|output|inout) \d+.*$", re.M)


@dataclass(frozen=True)
class Unit:
    """A part of a design, in Yosys's language."""

    text: str
    top: str


def split_units(text: str) -> dict[str, Unit]:
    """The units of a design by their places. The top, which only stands for pins, is left out."""
    modules = _modules(text)
    members: dict[str, list[str]] = {}
    for name in modules:
        members.setdefault(_unit_of(name), []).append(name)
    return {unit: _cut_out(unit, names, modules) for unit, names in members.items()
            if "." in unit}


def _modules(text: str) -> dict[str, str]:
    found = {}
    for part in text.split("\nmodule \\")[1:]:
        name, _, rest = part.partition("\n")
        found[name] = rest[:f"{rest}\n".index("\nend\n")]
    return found


def _unit_of(name: str) -> str:
    """The innermost unit that a module belongs to."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = ".".join(parts[:length])
        if length <= DEPTH or REPEATED.fullmatch(place):
            return place
    raise AssertionError("a module has a name")


def _cut_out(unit: str, members: list[str], modules: Mapping[str, str]) -> Unit:
    inside = "".join(f"module \\{name}\n{modules[name]}\nend\n" for name in members)
    outside = sorted({*CELL.findall(inside)} & modules.keys() - {*members})
    boxes = "".join(f"attribute \\blackbox 1\nmodule \\{name}\n"
                    + "\n".join(PORT.findall(modules[name])) + "\nend\n" for name in outside)
    names: dict[str, str] = {}
    numbers: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        if found[1] not in modules:
            return found[0]
        return "\\" + names.setdefault(found[1], f"unit{len(names)}")

    text = MODULE_NAME.sub(rename, inside + boxes)
    text = NUMBER.sub(lambda found: "$" + numbers.setdefault(found[1], str(len(numbers))), text)
    return Unit(text, names[unit])
