"""What cells and wires of an ECP5 of speed grade 6 cost, in nanoseconds, before placing.

Delays of cells are nextpnr's, rounded; those of wires depend on the fan-out alone, as they did on
average on the slow paths of a placed `tiny` (docs/clock.md). So a path's time is an estimate, but
the same netlist always gives the same one.
"""

from __future__ import annotations

from math import log2

from .timing_netlist import Cell

WIRE = 0.6                      # to a pin, at a fan-out of 1
WIRE_DOUBLED = 0.3              # more for each doubling of the fan-out
CLOCK_TO_OUT = {"TRELLIS_FF": 0.52, "DP16KD": 5.83}
SETUP = {"TRELLIS_FF": 0.0, "DP16KD": 0.25, "TRELLIS_DPR16X4": 0.0}
LATE_SETUP = {"LSR": 0.42, "WRE": 0.39}       # of single pins
# Between pins of a cell that computes without a clock.
THROUGH = {"LUT4": 0.24, "PFUMX": 0.16, "L6MUX21": 0.24, "TRELLIS_DPR16X4": 0.24,
           "MULT18X18D": 3.93}
SELECT = 0.26                   # from the pin of a PFUMX or L6MUX21 that chooses
CARRY_IN, CARRY, CARRY_OUT = 0.45, 0.07, 0.44     # onto a carry chain, along two bits, off it
CLOCKS = {"CLK", "CLKA", "CLKB", "WCK"}
# Pins that are wired to a neighbour inside a slice.
DEDICATED = {("CCU2C", "CIN"), ("PFUMX", "ALUT"), ("PFUMX", "BLUT"), ("L6MUX21", "D0"),
             ("L6MUX21", "D1")}
LOGIC = {"LUT4", "PFUMX", "L6MUX21"}              # what synthesis maps plain logic to


def cell_delay(cell: Cell, pin: str, out: str) -> float | None:
    """Time from an input to an output of a cell; None if no path without a clock connects them."""
    if cell.kind == "CCU2C":
        return _carry(pin, out)
    if cell.kind == "TRELLIS_DPR16X4" and not pin.startswith("RAD"):
        return None
    if pin in ("C0", "SD") and cell.kind in ("PFUMX", "L6MUX21"):
        return SELECT
    return THROUGH.get(cell.kind)


def _carry(pin: str, out: str) -> float | None:
    if out == "COUT":
        return CARRY if pin == "CIN" else CARRY_IN
    if out == "S0" and pin.endswith("1"):
        return None
    return CARRY_OUT


def clock_to_out(cell: Cell) -> float | None:
    """Time from the clock to the outputs of a cell, if it has registers there."""
    return CLOCK_TO_OUT.get(cell.kind)


def setup_time(cell: Cell, pin: str) -> float | None:
    """Time before the clock at which an input must have settled, if a register is behind it."""
    if pin in CLOCKS:
        return None
    if cell.kind == "TRELLIS_DPR16X4" and pin.startswith("RAD"):
        return None
    return LATE_SETUP.get(pin, SETUP[cell.kind]) if cell.kind in SETUP else None


def wire_delay(driver: Cell | None, sink: Cell | None, pin: str, fanout: int) -> float:
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
