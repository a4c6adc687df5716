"""Static timing of a placed design, from the delays of its cells and wires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Node = tuple[str, str]          # a pin: its cell and its name


@dataclass
class Delays:
    """Nanoseconds along wires, through cells and before clock edges."""

    wires: dict[Node, tuple[Node, float]] = field(default_factory=dict)     # by the driven pin
    arcs: dict[str, list[tuple[str, str, float]]] = field(default_factory=dict)     # by the cell
    setups: dict[Node, float] = field(default_factory=dict)
    clocks: set[Node] = field(default_factory=set)


@dataclass(frozen=True)
class Hop:
    """A placed path goes through a cell: `wire` is the time on the way to it, `time` when the
    signal leaves it, or had to be there for the clock."""

    cell: str
    pin: str | None             # None where the path starts
    out: str | None             # None where it ends
    wire: float
    time: float


class PlacedTiming:
    """Arrival times at the outputs of all cells, for paths that start at registers."""

    def __init__(self, delays: Delays):
        self.delays = delays
        self.arrivals: dict[Node, tuple[float, Node | None]] = {}   # and the pin it came through
        self._start()
        for cell, arcs in self._in_order():
            for pin, out, delay in arcs:
                at = self._at((cell, pin))
                if at is not None:
                    now = self.arrivals.get((cell, out))
                    if now is None or at + delay > now[0]:
                        self.arrivals[cell, out] = at + delay, (cell, pin)

    def _start(self) -> None:
        clocked = {driver for pin, (driver, _) in self.delays.wires.items()
                   if pin in self.delays.clocks}
        for cell, arcs in self.delays.arcs.items():
            for pin, out, delay in arcs:
                wire = self.delays.wires.get((cell, pin))
                if wire is not None and wire[0] in clocked:
                    self.delays.clocks.add((cell, pin))
                    self.arrivals[cell, out] = delay, None

    def _in_order(self) -> Iterator[tuple[str, list[tuple[str, str, float]]]]:
        """Outputs without a clock, each behind those that it depends on."""
        arcs: dict[Node, list[tuple[str, str, float]]] = {}
        for cell, each in self.delays.arcs.items():
            for pin, out, delay in each:
                if (cell, pin) not in self.delays.clocks:
                    arcs.setdefault((cell, out), []).append((pin, out, delay))
        waiting: dict[Node, int] = {}
        readers: dict[Node, list[Node]] = {}
        for node, each in arcs.items():
            before = [self.delays.wires[node[0], pin][0] for pin, _, _ in each
                      if (node[0], pin) in self.delays.wires]
            before = [one for one in before if one in arcs]
            waiting[node] = len(before)
            for one in before:
                readers.setdefault(one, []).append(node)
        ready = [node for node, number in waiting.items() if not number]
        while ready:
            node = ready.pop()
            yield node[0], arcs[node]
            for reader in readers.get(node, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)

    def _at(self, node: Node) -> float | None:
        if node not in self.delays.wires:
            return None
        driver, wire = self.delays.wires[node]
        arrival = self.arrivals.get(driver)
        return None if arrival is None else arrival[0] + wire

    def ends(self) -> Iterator[tuple[Node, float]]:
        """Pins of registers, and when the slowest path has settled there with time to spare."""
        for node, setup in self.delays.setups.items():
            at = self._at(node)
            if at is not None:
                yield node, at + setup

    def path_to(self, end: Node) -> list[Hop]:
        """The slowest path to a pin, from its start."""
        driver, wire = self.delays.wires[end]
        time = self.arrivals[driver][0] + wire + self.delays.setups[end]
        hops = [Hop(end[0], end[1], None, wire, time)]
        while True:
            time, pin = self.arrivals[driver]
            if pin is None:
                return [Hop(driver[0], None, driver[1], 0, time), *reversed(hops)]
            before, wire = self.delays.wires[pin]
            hops.append(Hop(driver[0], pin[1], driver[1], wire, time))
            driver = before
