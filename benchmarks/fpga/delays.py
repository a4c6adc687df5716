"""What cells and wires of an ECP5 of speed grade 6 cost, in nanoseconds, before placing.

Delays of cells are nextpnr's, rounded; those of wires are a guess that depends on the fan-out
alone (docs/clock.md). So a path's time is an estimate, but the same netlist always gives the same
one.
"""

from __future__ import annotations

from math import log2

from .netlist import Cell

WIRE = 0.65                     # to a pin, at a fan-out of 1
WIRE_DOUBLED = 0.16             # more for each doubling of the fan-out
CLOCK_TO_OUT = {"TRELLIS_FF": 0.52, "DP16KD": 5.6}
SETUP = 0.1
# Between pins of a cell that computes without a clock: to its output, or to an output by name.
THROUGH = {"LUT4": 0.24, "PFUMX": 0.18, "L6MUX21": 0.18, "TRELLIS_DPR16X4": 0.24,
           "MULT18X18D": 3.9}
CARRY_IN, CARRY, CARRY_OUT = 0.45, 0.07, 0.45     # onto a carry chain, along two bits, off it
CLOCKS = {"CLK", "CLKA", "CLKB", "WCK"}
# Pins that are wired to a neighbour inside a slice.
DEDICATED = {("CCU2C", "CIN"), ("PFUMX", "ALUT"), ("PFUMX", "BLUT"), ("L6MUX21", "D0"),
             ("L6MUX21", "D1")}
LOGIC = {"LUT4", "PFUMX", "L6MUX21"}              # what synthesis maps plain logic to


def through(cell: Cell, pin: str, out: str) -> float | None:
    """Time from an input to an output of a cell; None if no path without a clock connects them."""
    if cell.kind == "CCU2C":
        return _carry(pin, out)
    if cell.kind == "TRELLIS_DPR16X4" and not pin.startswith("RAD"):
        return None
    return THROUGH.get(cell.kind)


def _carry(pin: str, out: str) -> float | None:
    if out == "COUT":
        return CARRY if pin == "CIN" else CARRY_IN
    if out == "S0" and pin.endswith("1"):
        return None
    return CARRY_OUT


def starts(cell: Cell) -> float | None:
    """Time from the clock to the outputs of a cell, if it has registers there."""
    return CLOCK_TO_OUT.get(cell.kind)


def ends(cell: Cell, pin: str) -> float | None:
    """Time before the clock at which an input must have settled, if a register is behind it."""
    if pin in CLOCKS:
        return None
    if cell.kind == "TRELLIS_DPR16X4":
        return None if pin.startswith("RAD") else SETUP
    return SETUP if cell.kind in CLOCK_TO_OUT else None


def wire(driver: Cell | None, sink: Cell | None, pin: str, fanout: int) -> float:
    """Time along a net to one of its pins; None stands for a port."""
    if sink is not None:
        if (sink.kind, pin) in DEDICATED:
            return 0
        beside = driver is not None and driver.kind in (*LOGIC, "CCU2C")
        if sink.kind == "TRELLIS_FF" and pin == "DI" and fanout == 1 and beside:
            return 0
    return WIRE + WIRE_DOUBLED * log2(max(fanout, 1))


def is_level(cell: Cell, pin: str) -> bool:
    """Whether a path that enters a cell here goes through one more level of logic."""
    return (cell.kind, pin) not in DEDICATED
