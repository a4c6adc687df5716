"""Packs registers around Gowin's multipliers and behind its block RAMs into these blocks.

A register's input comes from the LUT in front of it, so one that a block drives, or another
register, takes a place of a LUT for itself. The blocks have registers of their own, which Yosys
does not use.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ...base.atomic_files import write_atomically
from ...base.checked_values import PlainData
from ..ecp5.editable_netlist import Bit, Cell, Netlist

MULTIPLIERS = ("MULT9X9", "MULT18X18")
# The only memory with 36 bits, which is the one width whose registers work on all parts.
MEMORY, WIDTH = "SDPX9B", 36
REGISTERS = ("DFF", "DFFE")         # that begin with zero, and that nothing resets
FACTORS, BEHIND = {"A": "AREG", "B": "BREG"}, ("OUT_REG", "PIPE_REG")


class Control(NamedTuple):
    """What a register waits for: its clock and its enable."""

    clock: Bit
    enable: Bit


class RegisterPacker:
    """One module, whose registers move one by one."""

    def __init__(self, module: PlainData):
        self.netlist = Netlist(module)
        self.cells = self.netlist.cells
        self.drivers = {bit: name for name, cell in self.cells.items()
                        for port, bits in cell["connections"].items()
                        if cell["port_directions"][port] == "output" for bit in bits}
        self.one, self.zero = self._constant("VCC"), self._constant("GND")

    def run(self) -> Counter[str]:
        """How many registers are gone, by the type of block."""
        done: Counter[str] = Counter()
        for name, cell in list(self.cells.items()):
            before = len(self.cells)
            if cell["type"] in MULTIPLIERS and cell["connections"]["CLK"] == [self.zero]:
                self._pack_multiplier(name, cell)
            elif cell["type"] == MEMORY:
                self._pack_memory(name, cell)
            done[cell["type"]] += before - len(self.cells)
        return +done

    def _constant(self, kind: str) -> Bit | None:
        """The wire that a cell drives for all."""
        return next((cell["connections"][kind[0]][0] for cell in self.cells.values()
                     if cell["type"] == kind), None)

    def _pack_multiplier(self, name: str, cell: Cell) -> None:
        """Up to two stages behind it, and one before each factor, if all wait for the same."""
        control = None
        for stage in BEHIND:
            found = self._registers_behind(cell, "DOUT")
            if found is None or control not in (None, found):
                break
            control = found
            self._take_outputs(cell, "DOUT")
            cell["parameters"][stage] = "1"
        for port, stage in FACTORS.items():
            found = self._registers_before(cell, port)
            if found is not None and control in (None, found):
                control = found
                self._take_inputs(name, cell, port)
                cell["parameters"][stage] = "1"
        if control is not None:
            self._connect(name, {"CLK": control.clock, "CE": control.enable})

    def _pack_memory(self, name: str, cell: Cell) -> None:
        """What is read."""
        parameters, wires = cell["parameters"], cell["connections"]
        plain = (int(parameters["READ_MODE"], 2) == 0 and wires["RESETB"] == [self.zero]
                 and int(parameters["BIT_WIDTH_1"], 2) == WIDTH)
        found = self._registers_behind(cell, "DO") if plain else None
        if found is not None and wires["CLKB"] == [found.clock]:
            self._take_outputs(cell, "DO")
            parameters["READ_MODE"] = "1"
            self._connect(name, {"OCE": found.enable})

    def _registers_behind(self, cell: Cell, port: str) -> Control | None:
        """What all registers behind an output wait for; None if anything else reads it."""
        controls = set()
        for bit in cell["connections"][port]:
            for reader, to in self.netlist.readers.get(bit, ()):
                if to != "D" or not self._can_move(reader):
                    return None
                controls.add(self._control(reader))
            if len(self.netlist.readers.get(bit, ())) > 1:
                return None
        return controls.pop() if len(controls) == 1 else None

    def _registers_before(self, cell: Cell, port: str) -> Control | None:
        """What all registers before a factor wait for; None if one has other readers, too, or if
        they take no places of their own: with logic before them."""
        controls, alone = set(), False
        for bit in cell["connections"][port]:
            if bit == self.zero:
                continue
            register = self.drivers.get(bit, "")
            if not self._can_move(register) or any(
                    reader not in self.cells or self.cells[reader]["type"] not in MULTIPLIERS
                    for reader, _ in self.netlist.readers[bit]):
                return None
            controls.add(self._control(register))
            source = self.drivers.get(self.cells[register]["connections"]["D"][0], "")
            alone |= source in self.cells and not self.cells[source]["type"].startswith(
                ("LUT", "ALU"))
        return controls.pop() if len(controls) == 1 and alone else None

    def _can_move(self, name: str) -> bool:
        return name in self.cells and self.cells[name]["type"] in REGISTERS

    def _control(self, register: str) -> Control:
        wires = self.cells[register]["connections"]
        return Control(wires["CLK"][0], wires.get("CE", [self.one])[0])

    def _take_outputs(self, cell: Cell, port: str) -> None:
        """Put an output in the place of the registers behind it."""
        bits = cell["connections"][port]
        for number, bit in enumerate(bits):
            for register, _ in list(self.netlist.readers.get(bit, ())):
                bits[number] = self.cells[register]["connections"]["Q"][0]
                self.drivers[bits[number]] = self.drivers[bit]
                self.netlist.remove(register)

    def _take_inputs(self, name: str, cell: Cell, port: str) -> None:
        """Let a factor read what the registers before it do, which go if nobody else reads them."""
        bits, readers = cell["connections"][port], self.netlist.readers
        registers = {bit: self.drivers[bit] for bit in bits if bit != self.zero}
        for number, bit in enumerate(bits):
            if bit == self.zero:
                continue
            register = registers[bit]
            bits[number] = self.cells[register]["connections"]["D"][0]
            readers[bit].remove((name, port))
            readers[bits[number]].append((name, port))
        for bit, register in registers.items():
            if not readers[bit]:
                self.netlist.remove(register)

    def _connect(self, name: str, wires: dict[str, Bit]) -> None:
        for port, bit in wires.items():
            self.netlist.connect(name, port, bit)


def pack_registers_in_file(source: str, to: str, top: str) -> None:
    """The step of a build, on a design of Yosys as JSON."""
    design = json.loads(Path(source).read_text(encoding="utf-8"))
    RegisterPacker(design["modules"][top]).run()
    write_atomically(Path(to), json.dumps(design).encode())
