"""The routing that nextpnr wrote (dump_routing.py), and when a signal arrives at each pin of a net.

Elmore's delay, as Project X-Ray's data are meant: a switch that drives a wire anew sees all
capacitance up to the next such switches, a wire's resistance half of its own capacitance and all of
theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...facts.errors import BoardError
from .fabric import NANOSECONDS, Fabric, Node, Switch, Wire

PLACE = re.compile(r"X(\d+)Y(\d+)/(.+)")
LUT_INPUT = re.compile(r"A[1-6]")
LUT = "SLICE_LUTX"


@dataclass(frozen=True)
class RoutedCell:
    kind: str
    bel: str
    parameters: dict[str, str]
    reads: frozenset[str]           # inputs that matter, of a LUT


@dataclass(frozen=True)
class Pin:
    cell: str
    port: str
    wire: Wire


@dataclass
class Net:
    name: str
    driver: Pin | None = None
    users: list[Pin] = field(default_factory=list)
    pips: list[tuple[Wire, Wire]] = field(default_factory=list)     # from, to


@dataclass(frozen=True)
class Routing:
    cells: dict[str, RoutedCell]
    nets: list[Net]


def read_routing(path: Path) -> Routing:
    cells: dict[str, RoutedCell] = {}
    nets: list[Net] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            word, *rest = line.rstrip("\n").split("\t")
            if word == "cell":
                name, kind, bel, parameters, reads = rest
                values = dict(each.split("=", 1) for each in parameters.split(" ") if "=" in each)
                cells[name] = RoutedCell(kind, bel, values, frozenset(reads.split()))
            elif word == "net":
                nets.append(Net(rest[0]))
            elif word == "pip":
                if rest[0] != "None":
                    nets[-1].pips.append(_parse_pip(rest[0]))
            elif word == "from":
                nets[-1].driver = Pin(rest[0], rest[1], _parse_wire(rest[2]))
            elif word == "to" and rest[2] != "None":
                nets[-1].users.append(Pin(rest[0], rest[1], _parse_wire(rest[2])))
    return Routing(cells, nets)


def _parse_wire(text: str) -> Wire:
    found = PLACE.fullmatch(text)
    if found is None:
        raise BoardError(f"routing.txt: {text!r} is no wire, as X53Y47/CLBLM_L_BQ is")
    return int(found[1]), int(found[2]), found[3]


def _parse_pip(text: str) -> tuple[Wire, Wire]:
    place, target, source = text.split("/")
    column, row, _ = _parse_wire(f"{place}/{target}")
    return (column, row, source), (column, row, target)


class NetDelays:
    """One net as a tree of nodes."""

    def __init__(self, net: Net, fabric: Fabric):
        self.net, self.fabric = net, fabric
        self.children: dict[int, list[tuple[Node, Switch]]] = {}
        for source, target in net.pips:
            switch = fabric.type_at(target).switch(source[2], target[2])
            self.children.setdefault(fabric.node(source).number, []).append(
                (fabric.node(target), switch))
        self.times: dict[int, float] = {}
        if net.driver is not None:
            self._walk(fabric.node(net.driver.wire))

    def _load(self, node: Node) -> float:
        """The capacitance that what drives this node sees."""
        return node.capacitance + sum(
            switch.capacitance if switch.resistance else self._load(child)
            for child, switch in self.children.get(node.number, ()))

    def _walk(self, root: Node) -> None:
        waiting = [(root, 0.0, 0.0)]
        while waiting:
            node, time, resistance = waiting.pop()
            load = self._load(node)
            time += NANOSECONDS * (resistance * load
                                   + node.resistance * (load - node.capacitance / 2))
            self.times[node.number] = time
            waiting += [(child, time + switch.delay, switch.resistance)
                        for child, switch in self.children.get(node.number, ())]

    def arrivals(self, cells: dict[str, RoutedCell]) -> Iterator[tuple[Pin, float]]:
        """When the signal is at each pin that reads it, from the pin that drives it."""
        for pin in self.net.users:
            cell = cells[pin.cell]
            if cell.kind == LUT and LUT_INPUT.fullmatch(pin.port):
                if pin.port in cell.reads:
                    yield pin, self._at_lut(pin)
            else:
                time = self.times.get(self.fabric.node(pin.wire).number)
                if time is None:
                    raise BoardError(f"{self.net.name}: its route does not reach {pin.port} of "
                                     f"{pin.cell}")
                yield pin, time

    def _at_lut(self, pin: Pin) -> float:
        """nextpnr routes to any input of a LUT and exchanges them afterwards. So a route ends at
        the pin of the site, not at the wire behind it."""
        kind = self.fabric.type_at(pin.wire)
        wire = kind.pin_wires[pin.wire[2]]
        time = self.times.get(self.fabric.node((*pin.wire[:2], wire)).number)
        if time is None:
            raise BoardError(f"{self.net.name}: its route does not reach {pin.port} of {pin.cell}")
        return time + kind.pins[wire].delay
