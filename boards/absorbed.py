"""Registers of an ECP5 design that its multipliers and block RAMs have inside, at their outputs.

Yosys leaves them in slices, and the wires there may take as long as the block itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..isa.atomic import write_atomically

Bit = int | str                     # a wire, or a constant: "0", "1", "x"
Cell = dict[str, Any]

REGISTER, MULTIPLIER, MEMORY = "TRELLIS_FF", "MULT18X18D", "DP16KD"
ALWAYS = "1 "                       # a register's CEMUX where nothing enables it


@dataclass(frozen=True)
class Timing:
    """What a register waits for."""

    clock: Bit
    enable: Bit


class Absorber:
    """One module, whose registers move one by one."""

    def __init__(self, module: Mapping[str, Any]):
        self.cells: dict[str, Cell] = module["cells"]
        self.readers: dict[Bit, list[tuple[str, str]]] = {}     # the ports that read it
        for name, cell in self.cells.items():
            for port, bit in _bits(cell):
                if cell["port_directions"][port] != "output":
                    self.readers.setdefault(bit, []).append((name, port))
        for each in module["ports"].values():
            for bit in each["bits"]:
                self.readers.setdefault(bit, []).append(("", ""))

    def absorb(self) -> Counter[str]:
        """How many registers have moved, by the type of their new place."""
        moved: Counter[str] = Counter()
        for name, cell in list(self.cells.items()):
            if cell["type"] == MULTIPLIER:
                moved[MULTIPLIER] += self._into_multiplier(name, cell)
            elif cell["type"] == MEMORY:
                moved[MEMORY] += self._into_memory(name, cell)
        return moved

    def _into_multiplier(self, name: str, cell: Cell) -> int:
        """The product. Factors stay where they are: the wire from a far adder to a multiplier takes
        as long as the multiplier, and better has a cycle for itself."""
        products = self._behind(name, "P")
        timings = {_timing(self.cells[each]) for each in (products or {}).values()}
        if not products or len(timings) != 1 or any(
                each.startswith("REG_") for each in cell["parameters"]):
            return 0
        timing = timings.pop()
        self._take(cell, products)
        cell["parameters"] |= {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0",
                               "REG_OUTPUT_RST": "RST0"}
        for port, bit in (("CLK0", timing.clock), ("CE0", timing.enable), ("RST0", "0")):
            self._connect(name, cell, port, bit)
        return len(products)

    def _into_memory(self, name: str, cell: Cell) -> int:
        """What is read; both sides, since a wide word is read from both."""
        if cell["parameters"]["REGMODE_A"] != "NOREG" or cell["parameters"]["REGMODE_B"] != "NOREG":
            return 0
        words = self._behind(name, "DO")
        timings = {_timing(self.cells[each]) for each in (words or {}).values()}
        if not words or len(timings) != 1:
            return 0
        timing = timings.pop()
        if {cell["connections"]["CLKA"][0], cell["connections"]["CLKB"][0]} != {timing.clock}:
            return 0
        self._take(cell, words)
        for side in ("A", "B"):
            cell["parameters"][f"REGMODE_{side}"] = "OUTREG"
            self._connect(name, cell, f"OCE{side}", timing.enable)
        return len(words)

    def _behind(self, name: str, prefix: str) -> dict[str, str] | None:
        """The registers behind the outputs of a cell, by port; none, if others read these too."""
        found = {}
        for port, bit in _bits(self.cells[name]):
            if port.startswith(prefix) and self.readers.get(bit):
                (reader, to), *others = self.readers[bit]
                if others or to != "DI" or not self._can_move(reader):
                    return None
                found[port] = reader
        return found

    def _can_move(self, name: str) -> bool:
        """Whether it is a register that nothing resets, and that begins with zero."""
        cell = self.cells.get(name)
        if cell is None or cell["type"] != REGISTER:
            return False
        parameters = cell["parameters"]
        return bool(parameters["REGSET"] == "RESET" and parameters["CLKMUX"] == "CLK"
                    and parameters["CEMUX"] in (ALWAYS, "CE")
                    and cell["connections"].get("LSR", ["0"]) == ["0"])

    def _take(self, cell: Cell, registers: Mapping[str, str]) -> None:
        """Put outputs in the place of the registers behind them."""
        for port, register in registers.items():
            bit = self.cells[register]["connections"]["Q"][0]
            self._remove(register)
            cell["connections"][port] = [bit]

    def _connect(self, name: str, cell: Cell, port: str, bit: Bit) -> None:
        for before in cell["connections"].get(port, ()):
            self.readers[before].remove((name, port))
        cell["connections"][port] = [bit]
        cell["port_directions"][port] = "input"
        self.readers.setdefault(bit, []).append((name, port))

    def _remove(self, name: str) -> None:
        for port, bit in _bits(self.cells.pop(name)):
            if port != "Q":
                self.readers[bit].remove((name, port))


def _bits(cell: Cell) -> Iterator[tuple[str, Bit]]:
    return ((port, bit) for port, bits in cell["connections"].items() for bit in bits)


def _timing(cell: Cell) -> Timing:
    enabled = cell["parameters"]["CEMUX"] != ALWAYS
    return Timing(cell["connections"]["CLK"][0], cell["connections"]["CE"][0] if enabled else "1")


def absorb(modules: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Move registers of modules, as Yosys writes them to JSON, into blocks; how many, by type."""
    return sum((Absorber(each).absorb() for each in modules), Counter[str]())


def absorb_file(source: str | Path, to: str | Path) -> Counter[str]:
    """The same for a file; a step of builds."""
    source, to = Path(source), Path(to)
    design = json.loads(source.read_text(encoding="utf-8"))
    moved = absorb(design["modules"].values())
    write_atomically(to, json.dumps(design).encode())
    return moved
