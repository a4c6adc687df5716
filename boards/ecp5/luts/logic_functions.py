"""Functions of a few wires, as LUTs hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..editable_netlist import Bit, Cell

PINS = "ABCD"                       # of a LUT4, or of half a CCU2C: the lowest bit first


@dataclass(frozen=True)
class Function:
    """Bit k of `table` is the value where input j is bit j of k. No input is without effect."""

    inputs: tuple[Bit, ...]
    table: int

    def at(self, values: Mapping[Bit, int]) -> int:
        return self.table >> sum(values[bit] << j for j, bit in enumerate(self.inputs)) & 1

    def cofactor(self, bit: Bit, value: int) -> Function:
        """The rest of it where one input has a value."""
        rest = [each for each in self.inputs if each != bit]
        return tabulate(rest, lambda values: self.at({**values, bit: value}))

    def substitute(self, bit: Bit, other: Function) -> Function:
        """With another function in place of an input."""
        rest = [each for each in self.inputs if each != bit]
        return tabulate([*rest, *other.inputs],
                        lambda values: self.at({**values, bit: other.at(values)}))

    def init(self) -> str:
        """The parameter of a LUT4 with its inputs at the first pins."""
        return f"{self.table:0{1 << len(self.inputs)}b}" * (1 << len(PINS) - len(self.inputs))


def tabulate(inputs: Iterable[Bit], value: Callable[[dict[Bit, int]], int]) -> Function:
    """The function that gives `value` of each assignment."""
    found = [*dict.fromkeys(inputs)]
    rows = [value(_values(found, k)) for k in range(1 << len(found))]
    for bit in [*found]:
        half = 1 << found.index(bit)
        lower = [row for k, row in enumerate(rows) if not k & half]
        if lower == [row for k, row in enumerate(rows) if k & half]:
            rows = lower
            found.remove(bit)
    return Function(tuple(found), sum(row << k for k, row in enumerate(rows)))


def _values(inputs: Sequence[Bit], number: int) -> dict[Bit, int]:
    return {bit: number >> j & 1 for j, bit in enumerate(inputs)}


def of_lut(cell: Cell, pins: Sequence[str] = PINS, init: str = "INIT") -> Function:
    """What a LUT4, or some pins of a CCU2C, compute."""
    wires = [cell["connections"].get(pin, ["0"])[0] for pin in pins]
    table = int(cell["parameters"][init], 2)
    return tabulate((bit for bit in wires if isinstance(bit, int)), lambda values: table >> sum(
        values.get(bit, int(bit == "1")) << place for place, bit in enumerate(wires)) & 1)
