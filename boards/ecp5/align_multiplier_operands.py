"""Signed factors of an ECP5 design that are narrower than a multiplier's port: in its upper bits.

There they need no copies of their sign, each of which is a wire to the multiplier: 20 of 36 where
both factors have eight bits. The product moves up with them.
"""

from __future__ import annotations

from .editable_netlist import MULTIPLIER, Cell, Netlist

PORT_BITS, PRODUCT_BITS = 18, 36


def align_multiplier_operands(netlist: Netlist) -> int:
    """How many wires multipliers need no more."""
    return sum(_align(netlist, name, cell) for name, cell in netlist.cells.items()
               if cell["type"] == MULTIPLIER)


def _align(netlist: Netlist, name: str, cell: Cell) -> int:
    wires = cell["connections"]
    products = {number: wires[f"P{number}"][0] for number in range(PRODUCT_BITS)
                if f"P{number}" in wires and netlist.readers.get(wires[f"P{number}"][0])}
    room = PRODUCT_BITS - 1 - max(products, default=PRODUCT_BITS - 1)
    raised = 0
    for side in ("A", "B"):
        by = min(_count_sign_copies(cell, side), room - raised)
        if by:
            factor = [wires[f"{side}{number}"][0] for number in range(PORT_BITS)]
            for number, bit in enumerate((*("0" * by), *factor[:PORT_BITS - by])):
                netlist.connect(name, f"{side}{number}", bit)
            raised += by
    if raised:
        for number in range(PRODUCT_BITS):
            wires.pop(f"P{number}", None)
            cell["port_directions"].pop(f"P{number}", None)
        for number, bit in products.items():
            wires[f"P{number + raised}"] = [bit]
            cell["port_directions"][f"P{number + raised}"] = "output"
    return raised


def _count_sign_copies(cell: Cell, side: str) -> int:
    """How many of the upper bits only repeat the sign of a factor, if it has one."""
    wires = cell["connections"]
    factor = [wires.get(f"{side}{number}", ["0"])[0] for number in range(PORT_BITS)]
    if wires.get(f"SIGNED{side}") != ["1"] or isinstance(factor[-1], str):
        return 0
    copies = 0
    while copies < PORT_BITS - 1 and factor[PORT_BITS - 2 - copies] == factor[-1]:
        copies += 1
    return copies
