"""Replicates registers of an ECP5 design that many multipliers read: a copy for each of them.

Multipliers are in few rows of the part, all across it, and a wire from one register to many takes
longer than a multiplication. Where each computes two products, there is plain logic beside it that
reads the same. Yosys merges registers that hold the same, whatever it is told.
"""

from __future__ import annotations

from .editable_netlist import LUT, MULTIPLIER, REGISTER, Bit, Netlist, bits_of

MANY = 8                # multipliers do not share a register
COPY = "$copy"          # in names, with a number behind it


def replicate_registers(netlist: Netlist) -> int:
    """Replicate registers with many multipliers behind them; how many copies that makes."""
    registers = [name for name, cell in netlist.cells.items() if cell["type"] == REGISTER]
    return sum(_replicate(netlist, name) for name in registers)


def _replicate(netlist: Netlist, name: str) -> int:
    register = netlist.cells[name]
    output = register["connections"]["Q"][0]
    multipliers = _multiplier_readers(netlist, output)
    if len(multipliers) < MANY:
        return 0
    owners = {reader: reader if reader in multipliers
              else _multiplier_beside(netlist, reader, output)
              for reader, _ in netlist.readers[output]}
    for multiplier in multipliers:
        to = netlist.wire()
        netlist.add(f"{name}{COPY}{to}", {
            **register, "connections": {**register["connections"], "Q": [to]}})
        for reader, port in list(netlist.readers[output]):
            if owners[reader] == multiplier:
                netlist.connect(reader, port, to)
    if not netlist.readers[output]:
        netlist.remove(name)
    return len(multipliers)


def _multiplier_beside(netlist: Netlist, reader: str, output: Bit) -> str | None:
    """The one multiplier that reads something which this LUT reads, too: it belongs there."""
    if not reader or netlist.cells[reader]["type"] != LUT:
        return None
    cell = netlist.cells[reader]
    shared = (_multiplier_readers(netlist, bit) for port, bit in bits_of(cell)
              if cell["port_directions"][port] == "input" and bit != output)
    found = {each for multipliers in shared if len(multipliers) == 1 for each in multipliers}
    return found.pop() if len(found) == 1 else None


def _multiplier_readers(netlist: Netlist, bit: Bit) -> list[str]:
    """Those that read a wire."""
    if isinstance(bit, str):            # a constant
        return []
    found = dict.fromkeys(reader for reader, _ in netlist.readers.get(bit, ()))
    return [name for name in found if name and netlist.cells[name]["type"] == MULTIPLIER]
