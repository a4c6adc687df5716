"""How fast a routed design is: the slowest path between registers, and what it goes through.

nextpnr's own figure leaves out what the database says of LUT inputs, multipliers, the processing
system and the capacitance of wires: see docs/clock.md.
"""

from __future__ import annotations

from pathlib import Path

from ...build.static_timing import Delays, PlacedTiming
from ...facts.errors import BoardError
from .cells import CellDelays, is_clock
from .fabric import Fabric
from .routing import NetDelays, Routing, read_routing

# Of a period: for the skew of the clock tree and the jitter of the processing system's PLL, of
# which the database says nothing. It is an assumption, not a figure of the data sheet.
UNCERTAINTY = 0.3


def analyse(routing: Routing, family: Path, device: str) -> PlacedTiming:
    """When signals arrive, in nanoseconds after the clock."""
    fabric, cells, delays = Fabric(family, device), CellDelays(family), Delays()
    ports: dict[str, set[str]] = {}
    for net in routing.nets:
        if net.driver is None:
            continue
        ports.setdefault(net.driver.cell, set()).add(net.driver.port)
        for pin, time in NetDelays(net, fabric).arrivals(routing.cells):
            delays.wires[pin.cell, pin.port] = (net.driver.cell, net.driver.port), time
            ports.setdefault(pin.cell, set()).add(pin.port)
    for name, each in ports.items():
        timing = cells.timing(routing.cells[name], frozenset(each))
        delays.arcs[name] = [(*pins, delay) for pins, delay in timing.arcs.items()]
        delays.setups |= {(name, pin): time for pin, time in timing.setups.items()}
        delays.clocks |= {(name, port) for port in each if is_clock(port)}
    return PlacedTiming(delays)


def analyse_file(routing: Path, family: Path, device: str) -> dict[str, object]:
    """The clock that a routed design bears, and its slowest path."""
    found = read_routing(routing)
    timing = analyse(found, family, device)
    ends = list(timing.ends())
    if not ends:
        raise BoardError(f"{routing}: no path ends at a register")
    end, slowest = max(ends, key=lambda each: each[1])
    period = slowest + UNCERTAINTY
    path = [{"cell": hop.cell, "kind": found.cells[hop.cell].kind, "pin": hop.pin, "out": hop.out,
             "wire_ns": round(hop.wire, 3), "ns": round(hop.time, 3)}
            for hop in timing.path_to(end)]
    return {"mhz": round(1000 / period, 2), "period_ns": round(period, 3),
            "uncertainty_ns": UNCERTAINTY, "ends": len(ends), "path": path}
