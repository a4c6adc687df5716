"""Puts LUTs in front of ECP5's carry chains into them.

Half a CCU2C is a LUT of four inputs whose output is added to the carry. Yosys has the two operands
there, and LUTs in front that choose or mask them. No path gets longer: a LUT and a wire are gone.

    sum     propagate ^ carry in
    carry   propagate ? carry in : generate

What it propagates is a function of all four pins, what it generates one of A and B: the same, with
C and D low.
"""

from __future__ import annotations

from itertools import combinations

from ..editable_netlist import LUT, Bit, Cell, Netlist
from .logic_functions import PINS, Function, of_lut

CARRY, HALVES = "CCU2C", ("0", "1")
FIRST = PINS[:2]                    # the pins of which a carry is generated


def absorb_luts(netlist: Netlist) -> int:
    """Absorb what fits; how many LUTs are gone."""
    drivers = {cell["connections"]["Z"][0]: name for name, cell in netlist.cells.items()
               if cell["type"] == LUT and "INIT" in cell["parameters"]}
    gone = 0
    for name, cell in [*netlist.cells.items()]:
        if cell["type"] == CARRY:
            for half in HALVES:
                gone += _absorb(netlist, drivers, name, half)
    return gone


def _absorb(netlist: Netlist, drivers: dict[Bit, str], name: str, half: str) -> int:
    """As many LUTs in front of one half as fit."""
    cell = netlist.cells[name]
    propagate, generate = functions_of(cell, half)
    near = [bit for bit in propagate.inputs if bit in drivers and len(netlist.readers[bit]) == 1]
    for number in range(len(near), 0, -1):
        for absorbed in combinations(near, number):
            sums, carries = propagate, generate
            for bit in absorbed:
                lut = of_lut(netlist.cells[drivers[bit]])
                sums, carries = sums.substitute(bit, lut), carries.substitute(bit, lut)
            arranged = arrange(sums, carries)
            if arranged is not None:
                _rebuild(netlist, name, half, *arranged)
                for bit in absorbed:
                    netlist.remove(drivers.pop(bit))
                return number
    return 0


def functions_of(cell: Cell, half: str) -> tuple[Function, Function]:
    """What one half propagates and generates."""
    first = {**cell, "parameters": {"INIT": cell["parameters"][f"INIT{half}"][-4:]}}
    return (of_lut(cell, [pin + half for pin in PINS], f"INIT{half}"),
            of_lut(first, [pin + half for pin in FIRST]))


def arrange(propagate: Function, generate: Function) -> tuple[list[Bit], str] | None:
    """The wires at the pins, and the parameter, with which a half computes the same; what it
    generates matters only where it does not propagate. None if there are none."""
    inputs = [*dict.fromkeys((*propagate.inputs, *generate.inputs))]
    if len(inputs) > len(PINS):
        return None
    for first in combinations(inputs, min(len(FIRST), len(inputs))):
        rest = [bit for bit in inputs if bit not in first]
        pins: list[Bit] = [*first, *"00"[len(first):], *rest, *("0", "1")[len(rest):]]
        init = _fill(pins, propagate, generate)
        if init is not None:
            return pins, init
    return None


def _fill(pins: list[Bit], propagate: Function, generate: Function) -> str | None:
    """The parameter for wires at the pins; None if there is none. With a constant at D, the lower
    half of the table holds what is generated and nothing else."""
    rows: dict[int, int] = {}           # of the lowest four: what must be generated
    table = [0] * (1 << len(PINS))
    for number in range(len(table)):
        values = {bit: number >> place & 1 for place, bit in enumerate(pins)}
        if values.get("0") or values.get("1") == 0:
            continue
        table[number] = propagate.at(values)
        generated = generate.at(values)
        if not table[number] and rows.setdefault(number % 4, generated) != generated:
            return None
    for number, generated in rows.items():
        if pins[-1] == "1":
            table[number] = generated
        elif table[number] != generated:
            return None
    return "".join(map(str, reversed(table)))


def _rebuild(netlist: Netlist, name: str, half: str, pins: list[Bit], init: str) -> None:
    for pin, bit in zip(PINS, pins, strict=True):
        netlist.connect(name, pin + half, bit)
    netlist.cells[name]["parameters"][f"INIT{half}"] = init
