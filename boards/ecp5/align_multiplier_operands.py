"""Left-aligns narrow signed operands of ECP5 multipliers, which then need no sign extension.

Each extended sign bit is a wire to the multiplier: 20 of 36 where both factors have eight bits. The
product moves up by as many bits as the operands did.
"""

from __future__ import annotations

from .editable_netlist import MULTIPLIER, Cell, Netlist

PORT_BITS, PRODUCT_BITS = 18, 36


def align_multiplier_operands(netlist: Netlist) -> int:
    """Align the operands of all multipliers; how many wires that saves."""
    return sum(_align(netlist, name, cell) for name, cell in netlist.cells.items()
               if cell["type"] == MULTIPLIER)


def _align(netlist: Netlist, name: str, cell: Cell) -> int:
    wires = cell["connections"]
    products = {number: wires[f"P{number}"][0] for number in range(PRODUCT_BITS)
                if f"P{number}" in wires and netlist.readers.get(wires[f"P{number}"][0])}
    room = PRODUCT_BITS - 1 - max(products, default=PRODUCT_BITS - 1)
    shift = 0
    for side in ("A", "B"):
        by = min(_count_sign_copies(cell, side), room - shift)
        if by:
            factor = [wires[f"{side}{number}"][0] for number in range(PORT_BITS)]
            for number, bit in enumerate((*("0" * by), *factor[:PORT_BITS - by])):
                netlist.connect(name, f"{side}{number}", bit)
            shift += by
    if shift:
        for number in range(PRODUCT_BITS):
            wires.pop(f"P{number}", None)
            cell["port_directions"].pop(f"P{number}", None)
        for number, bit in products.items():
            wires[f"P{number + shift}"] = [bit]
            cell["port_directions"][f"P{number + shift}"] = "output"
    return shift


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
