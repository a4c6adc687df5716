"""Packs registers behind ECP5 multipliers and block RAMs into the blocks' own output registers.

Yosys leaves them in slices, and the wires there can take as long as the block itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from .editable_netlist import MEMORY, MULTIPLIER, REGISTER, Bit, Cell, Netlist, bits_of

ALWAYS = "1 "                       # a register's CEMUX where nothing enables it
NEVER = "0"                         # a register's LSR where nothing resets it
RESETS = 4                          # wires that may reset multipliers


@dataclass(frozen=True)
class ControlSet:
    """Clock, enable and reset of a register."""

    clock: Bit
    enable: Bit
    reset: Bit


class RegisterPacker:
    """One module, whose registers move one by one."""

    def __init__(self, netlist: Netlist):
        self.netlist, self.cells = netlist, netlist.cells
        # Neighbours share these wires, so that each has the same name everywhere.
        self.resets: dict[Bit, str] = {NEVER: "RST0"}

    def run(self) -> Counter[str]:
        """How many registers were packed, by the type of block."""
        moved: Counter[str] = Counter()
        for name, cell in list(self.cells.items()):
            if cell["type"] == MULTIPLIER:
                moved[MULTIPLIER] += self._pack_multiplier(name, cell)
            elif cell["type"] == MEMORY:
                moved[MEMORY] += self._pack_memory(name, cell)
        return moved

    def _pack_multiplier(self, name: str, cell: Cell) -> int:
        """The product. Factors stay where they are: the wire from a far adder to a multiplier takes
        as long as the multiplier, and better has a cycle for itself."""
        products = self._registers_behind(name, "P")
        timings = {_control_set(self.cells[each]) for each in (products or {}).values()}
        if not products or len(timings) != 1 or any(
                each.startswith("REG_") for each in cell["parameters"]):
            return 0
        timing = timings.pop()
        reset = self._reset(timing)
        if reset is None:
            return 0
        self._replace_registers(cell, products)
        cell["parameters"] |= {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0",
                               "REG_OUTPUT_RST": reset}
        for port, bit in (("CLK0", timing.clock), ("CE0", timing.enable), (reset, timing.reset)):
            self.netlist.connect(name, port, bit)
        return len(products)

    def _reset(self, timing: ControlSet) -> str | None:
        """The multiplier's input for what resets a register, if there is one left. None if the
        register waits for an enable, too: which of the two wins there is not known."""
        if timing.reset != NEVER and timing.enable != "1":
            return None
        if timing.reset not in self.resets and len(self.resets) < RESETS:
            self.resets[timing.reset] = f"RST{len(self.resets)}"
        return self.resets.get(timing.reset)

    def _pack_memory(self, name: str, cell: Cell) -> int:
        """What is read; both sides, since a wide word is read from both."""
        if cell["parameters"]["REGMODE_A"] != "NOREG" or cell["parameters"]["REGMODE_B"] != "NOREG":
            return 0
        words = self._registers_behind(name, "DO")
        timings = {_control_set(self.cells[each]) for each in (words or {}).values()}
        if not words or len(timings) != 1:
            return 0
        timing = timings.pop()
        clocks = {cell["connections"][port][0] for port in ("CLKA", "CLKB")}
        if timing.reset != NEVER or clocks != {timing.clock}:
            return 0
        self._replace_registers(cell, words)
        for side in ("A", "B"):
            cell["parameters"][f"REGMODE_{side}"] = "OUTREG"
            self.netlist.connect(name, f"OCE{side}", timing.enable)
        return len(words)

    def _registers_behind(self, name: str, prefix: str) -> dict[str, str] | None:
        """The registers behind the outputs of a cell, by port; none, if others read these too."""
        found = {}
        for port, bit in bits_of(self.cells[name]):
            if port.startswith(prefix) and self.netlist.readers.get(bit):
                (reader, to), *others = self.netlist.readers[bit]
                if others or to != "DI" or not self._can_move(reader):
                    return None
                found[port] = reader
        return found

    def _can_move(self, name: str) -> bool:
        """Whether it is a register that begins with zero, and becomes zero if it is reset."""
        cell = self.cells.get(name)
        if cell is None or cell["type"] != REGISTER:
            return False
        parameters = cell["parameters"]
        return bool(parameters["REGSET"] == "RESET" and parameters["CLKMUX"] == "CLK"
                    and parameters["CEMUX"] in (ALWAYS, "CE")
                    and (_control_set(cell).reset == NEVER
                         or (parameters.get("SRMODE") == "LSR_OVER_CE"
                             and parameters["LSRMUX"] == "LSR")))

    def _replace_registers(self, cell: Cell, registers: Mapping[str, str]) -> None:
        """Put outputs in the place of the registers behind them."""
        for port, register in registers.items():
            bit = self.cells[register]["connections"]["Q"][0]
            self.netlist.remove(register)
            cell["connections"][port] = [bit]


def _control_set(cell: Cell) -> ControlSet:
    enabled = cell["parameters"]["CEMUX"] != ALWAYS
    wires = cell["connections"]
    return ControlSet(wires["CLK"][0], wires["CE"][0] if enabled else "1",
                  wires.get("LSR", [NEVER])[0])


def pack_registers(netlist: Netlist) -> Counter[str]:
    """Pack the registers of a module into blocks; how many, by the type of block."""
    return RegisterPacker(netlist).run()
