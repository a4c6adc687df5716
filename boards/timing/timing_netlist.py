"""A netlist as Yosys writes it in JSON: cells, their pins, and what nets were called."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...base.checked_values import PlainData

Bit = int | str             # a net of one bit, or the constants "0", "1", "x"
SOURCE = re.compile(r"\b((?:hw|amaranth)/[\w/]+\.py:\d+)")


@dataclass(frozen=True)
class Cell:
    """One cell: what it is, the line of ours that it comes from, and the nets at its pins.

    A pin of several bits is named bit by bit: `RAD[2]`.
    """

    name: str
    kind: str
    source: str | None
    inputs: Mapping[str, Bit]
    outputs: Mapping[str, Bit]


@dataclass(frozen=True)
class Netlist:
    """A flat module."""

    cells: Mapping[str, Cell]
    inputs: Mapping[str, Bit]       # ports, bit by bit
    outputs: Mapping[str, Bit]
    names: Mapping[Bit, tuple[str, ...]]    # what our sources call a net, in any unit
    scopes: Mapping[str, str]       # the file that describes each unit, by the unit's place

    @cached_property
    def drivers(self) -> dict[Bit, tuple[Cell, str]]:
        return {bit: (cell, pin) for cell in self.cells.values()
                for pin, bit in cell.outputs.items()}

    @cached_property
    def fanout(self) -> dict[Bit, int]:
        found: dict[Bit, int] = dict.fromkeys(self.outputs.values(), 1)
        for cell in self.cells.values():
            for bit in cell.inputs.values():
                found[bit] = found.get(bit, 0) + 1
        return found

    def count(self, kinds: str) -> int:
        """Cells whose type matches a regular expression."""
        return sum(re.fullmatch(kinds, cell.kind) is not None for cell in self.cells.values())

    def name_of(self, bit: Bit, source: str | None) -> str | None:
        """What a net is called where a line of source is, or else in the innermost unit.

        A signal that connects units has a name in each of them.
        """
        names = self.names.get(bit, ())
        file = (source or "").partition(":")[0]
        here = (name for name in names if self.scopes.get(name.rpartition(".")[0]) == file)
        return next(here, names[0] if names else None)

    def name_of_cell(self, cell: Cell) -> str | None:
        """A cell's own name, or that of the net it drives."""
        if not cell.name.startswith("$"):
            return cell.name
        return next(filter(None, (self.name_of(bit, cell.source)
                                  for bit in cell.outputs.values())), None)


def read_netlist(path: Path, top: str) -> Netlist:
    module = json.loads(path.read_text(encoding="utf-8"))["modules"][top]
    ports: dict[str, dict[str, Bit]] = {"input": {}, "output": {}}
    for name, port in module["ports"].items():
        ports[port["direction"]] |= _bitwise(name, port["bits"])
    cells = {name: _cell(name, each) for name, each in module["cells"].items()
             if each["type"] != "$scopeinfo"}
    return Netlist(cells, ports["input"], ports["output"], _names(module["netnames"]),
                   _scopes(module))


def _cell(name: str, each: PlainData) -> Cell:
    pins: dict[str, dict[str, Bit]] = {"input": {}, "output": {}, "inout": {}}
    for pin, bits in each["connections"].items():
        pins[each["port_directions"][pin]] |= _bitwise(pin, bits)
    return Cell(name, each["type"], _source(each["attributes"], "src"),
                pins["input"], pins["output"])


def _source(attributes: dict[str, str], name: str) -> str | None:
    found = SOURCE.search(attributes.get(name, ""))
    return found and found[1]


def _scopes(module: PlainData) -> dict[str, str]:
    places = {"": _source(module["attributes"], "src")}
    places |= {name: _source(each["attributes"], "module_src")
               for name, each in module["cells"].items() if each["type"] == "$scopeinfo"}
    return {name: source.partition(":")[0] for name, source in places.items() if source}


def _bitwise(name: str, bits: list[Bit]) -> dict[str, Bit]:
    if len(bits) == 1:
        return {name: bits[0]}
    return {f"{name}[{number}]": bit for number, bit in enumerate(bits)}


def _names(nets: PlainData) -> dict[Bit, tuple[str, ...]]:
    """Names of nets, those in inner units first, and before the ones with a number after a dollar,
    which Amaranth had to make different from others."""
    def rank(name: str) -> tuple[int, bool, int, str]:
        return -name.count("."), "$" in name, len(name), name

    found: dict[Bit, tuple[str, ...]] = {}
    for name in sorted((name for name in nets if not nets[name]["hide_name"]), key=rank):
        for bit_name, bit in _bitwise(name, nets[name]["bits"]).items():
            found[bit] = (*found.get(bit, ()), bit_name)
    return found
