"""Static timing: how long signals take from register to register through a netlist."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtron.base.errors import MicrotronError

from . import ecp5_delays
from .timing_netlist import Bit, Cell, Netlist

REGISTER, INPUT, OUTPUT = "register", "input", "output"


@dataclass(frozen=True)
class Step:
    """A path enters a cell at one pin, leaves it at another, and this is when."""

    cell: Cell
    pin: str
    out: str
    time: float


@dataclass(frozen=True)
class Path:
    """From a register or an input to a register or an output.

    `start` and `end` are cells, or None at a port; `pin_out` and `pin_in` are the pins there, or
    the ports. `levels` is the number of cells on the way, a carry chain counted once.
    """

    start: Cell | None
    pin_out: str
    steps: tuple[Step, ...]
    end: Cell | None
    pin_in: str
    time: float
    levels: int


@dataclass(frozen=True)
class Arrival:
    """When a net has settled, and through which pins of its driver the last signal came."""

    time: float
    pin: str | None             # None where a path starts
    out: str


@dataclass(frozen=True)
class End:
    """Where paths end: a pin of a cell with a register behind it, or an output."""

    cell: Cell | None
    pin: str
    bit: Bit
    time: float


class Timing:
    """Arrival times of all nets, for paths that start at registers, or at inputs."""

    def __init__(self, netlist: Netlist, start: str = REGISTER):
        self.netlist = netlist
        self.arrivals: dict[Bit, Arrival] = {}
        if start == REGISTER:
            for cell in netlist.cells.values():
                time = ecp5_delays.clock_to_out(cell)
                if time is not None:
                    for pin, bit in cell.outputs.items():
                        self.arrivals[bit] = Arrival(time, None, pin)
        else:
            for name, bit in netlist.inputs.items():
                self.arrivals[bit] = Arrival(ecp5_delays.CLOCK_TO_OUT["TRELLIS_FF"], None, name)
        for cell in topological_order(netlist):
            self._pass(cell)

    def _pass(self, cell: Cell) -> None:
        times = {pin: self._at(cell, pin, bit) for pin, bit in cell.inputs.items()
                 if bit in self.arrivals}
        for out, bit in cell.outputs.items():
            for pin, time in times.items():
                delay = ecp5_delays.cell_delay(cell, pin, out)
                if delay is not None:
                    now = self.arrivals.get(bit)
                    if now is None or time + delay > now.time:
                        self.arrivals[bit] = Arrival(time + delay, pin, out)

    def _at(self, cell: Cell | None, pin: str, bit: Bit) -> float:
        """When a net has settled at a pin."""
        driver = self.netlist.drivers.get(bit)
        return self.arrivals[bit].time + ecp5_delays.wire_delay(
            driver and driver[0], cell, pin, self.netlist.fanout[bit])

    def ends(self, kind: str = REGISTER) -> Iterator[End]:
        """All ends that a path reaches."""
        if kind == OUTPUT:
            for name, bit in self.netlist.outputs.items():
                if bit in self.arrivals:
                    yield End(None, name, bit, self._at(None, name, bit))
            return
        for cell in self.netlist.cells.values():
            for pin, bit in cell.inputs.items():
                setup = ecp5_delays.setup_time(cell, pin)
                if setup is not None and bit in self.arrivals:
                    yield End(cell, pin, bit, self._at(cell, pin, bit) + setup)

    def path_to(self, end: End) -> Path:
        """The slowest path to an end."""
        steps: list[Step] = []
        bit, arrival = end.bit, self.arrivals[end.bit]
        while arrival.pin is not None:
            cell = self.netlist.drivers[bit][0]
            steps.append(Step(cell, arrival.pin, arrival.out, arrival.time))
            bit = cell.inputs[arrival.pin]
            arrival = self.arrivals[bit]
        driver = self.netlist.drivers.get(bit)
        levels = sum(ecp5_delays.is_level(step.cell, step.pin) for step in steps)
        return Path(driver and driver[0], arrival.out, tuple(reversed(steps)), end.cell, end.pin,
                    end.time, levels)

    def longest(self, kind: str = REGISTER, count: int = 1) -> list[Path]:
        """The slowest paths to different ends, the slowest first."""
        return [self.path_to(end) for end in heapq.nlargest(
            count, self.ends(kind), key=lambda end: end.time)]


def topological_order(netlist: Netlist) -> list[Cell]:
    """The cells without a clock, each behind those it depends on."""
    drivers = netlist.drivers
    inside = {name: cell for name, cell in netlist.cells.items() if is_combinational(cell)}
    waiting: dict[str, int] = {}
    readers: dict[str, list[str]] = {}
    for name, cell in inside.items():
        before = {drivers[bit][0].name for pin, bit in cell.inputs.items()
                  if bit in drivers and drivers[bit][0].name in inside and _depends(cell, pin)}
        waiting[name] = len(before)
        for each in before:
            readers.setdefault(each, []).append(name)
    ready = [name for name, number in waiting.items() if not number]
    order = []
    while ready:
        name = ready.pop()
        order.append(inside[name])
        for reader in readers.get(name, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if len(order) != len(inside):
        raise MicrotronError(f"{len(inside) - len(order)} cells are in or behind a loop without a "
                             f"register, such as {_of_loop(netlist, waiting)}")
    return order


def is_combinational(cell: Cell) -> bool:
    return ecp5_delays.clock_to_out(cell) is None


def _depends(cell: Cell, pin: str) -> bool:
    return ecp5_delays.setup_time(cell, pin) is None


def _of_loop(netlist: Netlist, waiting: Mapping[str, int]) -> str:
    name = next(name for name, number in waiting.items() if number)
    return netlist.name_of_cell(netlist.cells[name]) or name
