"""A module of a design as Yosys writes it to JSON: its cells, and who reads a wire."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.checked_values import PlainData

Bit = int | str                     # a wire, or a constant: "0", "1", "x"
Cell = PlainData

# Cells of ECP5.
LUT, REGISTER, MULTIPLIER, MEMORY = "LUT4", "TRELLIS_FF", "MULT18X18D", "DP16KD"


class Netlist:
    """One module, whose cells change one by one; their ports have one bit each."""

    def __init__(self, module: PlainData):
        self.cells: dict[str, Cell] = module["cells"]
        self.readers: dict[Bit, list[tuple[str, str]]] = {}     # the ports that read it
        for name, cell in self.cells.items():
            for port, bit in bits_of(cell):
                if cell["port_directions"][port] != "output":
                    self.readers.setdefault(bit, []).append((name, port))
        for each in module["ports"].values():
            for bit in each["bits"]:
                self.readers.setdefault(bit, []).append(("", ""))
        wires = [bit for cell in self.cells.values() for _, bit in bits_of(cell)]
        self._last = max((bit for bit in (*wires, *self.readers) if isinstance(bit, int)),
                         default=1)

    def wire(self) -> int:
        """A new one."""
        self._last += 1
        return self._last

    def connect(self, name: str, port: str, bit: Bit) -> None:
        """Let an input read a wire, in place of the one that it read."""
        cell = self.cells[name]
        for before in cell["connections"].get(port, ()):
            self.readers[before].remove((name, port))
        cell["connections"][port] = [bit]
        cell["port_directions"][port] = "input"
        self.readers.setdefault(bit, []).append((name, port))

    def add(self, name: str, cell: Cell) -> None:
        self.cells[name] = cell
        for port, bit in bits_of(cell):
            if cell["port_directions"][port] != "output":
                self.readers.setdefault(bit, []).append((name, port))

    def remove(self, name: str) -> None:
        cell = self.cells.pop(name)
        for port, bit in bits_of(cell):
            if cell["port_directions"][port] != "output":
                self.readers[bit].remove((name, port))


def bits_of(cell: Cell) -> Iterator[tuple[str, Bit]]:
    return ((port, bit) for port, bits in cell["connections"].items() for bit in bits)
