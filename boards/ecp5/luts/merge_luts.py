"""Merges LUTs of ECP5 with the ones that read them, through the multiplexers of slices.

A PFUMX chooses between two LUT4s of a slice. Yosys makes functions of five inputs from it, but the
two LUTs may have different inputs: a 4:1 multiplexer, for which Yosys takes a PFUMX and three LUTs,
needs two. No path gets longer: a LUT and a wire are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..editable_netlist import LUT, Bit, Cell, Netlist
from .logic_functions import PINS, Function, of_lut, tabulate

CHOICE, SECOND_CHOICE = "PFUMX", "L6MUX21"
READERS = 4                         # of a LUT that is merged into each of them
INPUTS = 9                          # of two LUTs and the choice


@dataclass(frozen=True)
class Node:
    """A wire's function, and the cells that compute it."""

    function: Function
    cells: tuple[str, ...]


def merge_luts(netlist: Netlist) -> int:
    """Merge LUTs while that takes fewer of them; how many fewer."""
    return _Merger(netlist).run()


class _Merger:
    """One module, whose LUTs are merged one by one."""

    def __init__(self, netlist: Netlist):
        self.netlist = netlist
        self.nodes = dict(_nodes(netlist))
        self.computes = {name: bit for bit, node in self.nodes.items() for name in node.cells}

    def run(self) -> int:
        before = _count(self.netlist)
        waiting = [*self.nodes]
        while waiting:
            again: list[Bit] = []
            for bit in waiting:
                if bit in self.nodes:
                    again += self._merge(bit)
            waiting = [*dict.fromkeys(again)]
        return before - _count(self.netlist)

    def _merge(self, bit: Bit) -> list[Bit]:
        """Merge a wire's function into all that read it, if that takes fewer LUTs. Returns the
        wires whose functions may be merged now."""
        node, readers = self.nodes[bit], self._readers(bit)
        found: dict[Bit, Function] = {}
        more = -self._count(node)
        for reader in readers:
            function = self.nodes[reader].function
            if len({*function.inputs, *node.function.inputs} - {bit}) > INPUTS:
                return []
            found[reader] = function.substitute(bit, node.function)
            cost = cost_of(found[reader])
            if cost is None:
                return []
            more += cost - self._count(self.nodes[reader])
        if not found or more >= 0:
            return []
        for reader, function in found.items():
            self._replace(reader, function)
        for name in self.nodes.pop(bit).cells:
            self.netlist.remove(name)
        return [each for function in found.values() for each in function.inputs
                if each in self.nodes] + [*found]

    def _readers(self, bit: Bit) -> set[Bit]:
        """The wires whose functions read it; none if anything else does, or too many."""
        found = {self.computes.get(name, "") for name, _ in self.netlist.readers.get(bit, ())}
        return found if "" not in found and len(found) <= READERS else set()

    def _count(self, node: Node) -> int:
        return sum(self.netlist.cells[name]["type"] == LUT for name in node.cells)

    def _replace(self, bit: Bit, function: Function) -> None:
        """Compute a wire's function anew, in cells with the names of those before."""
        node, netlist = self.nodes[bit], self.netlist
        like = netlist.cells[node.cells[0]]
        for name in node.cells:
            netlist.remove(name)
        first = node.cells[0]
        select = choice_of(function)
        if select is None:
            cells = {first: _lut(function, bit)}
        else:
            halves = {pin: netlist.wire() for pin in ("ALUT", "BLUT")}
            cells = {first: {
                "type": CHOICE, "parameters": {},
                "port_directions": dict.fromkeys(("ALUT", "BLUT", "C0"), "input") | {"Z": "output"},
                "connections": {**{pin: [wire] for pin, wire in halves.items()}, "C0": [select],
                                "Z": [bit]}}}
            for value, pin in enumerate(("BLUT", "ALUT")):
                cells[f"{first}.{pin}"] = _lut(function.cofactor(select, value), halves[pin])
        for name, cell in cells.items():
            netlist.add(name, {"hide_name": 1, "attributes": like.get("attributes", {}), **cell})
            self.computes[name] = bit
        self.nodes[bit] = Node(function, tuple(cells))


def _nodes(netlist: Netlist) -> Iterator[tuple[Bit, Node]]:
    """The functions of LUTs, alone and behind a PFUMX, that may change."""
    drivers = {cell["connections"]["Z"][0]: name for name, cell in netlist.cells.items()
               if cell["type"] == LUT and "INIT" in cell["parameters"]}
    fixed = {cell["connections"][pin][0] for cell in netlist.cells.values()
             if cell["type"] == SECOND_CHOICE for pin in ("D0", "D1")}
    halves: set[Bit] = set()
    for name, cell in netlist.cells.items():
        if cell["type"] == CHOICE:
            select, bit, *pair = (cell["connections"][pin][0]
                                  for pin in ("C0", "Z", "BLUT", "ALUT"))
            halves.update(pair)
            if bit not in fixed and all(len(netlist.readers[each]) == 1 for each in pair):
                yield bit, Node(_choose(select, *(of_lut(netlist.cells[drivers[each]])
                                                  for each in pair)),
                                (name, *(drivers[each] for each in pair)))
    for bit, name in drivers.items():
        if bit not in halves:
            yield bit, Node(of_lut(netlist.cells[name]), (name,))


def _choose(select: Bit, zero: Function, one: Function) -> Function:
    return tabulate((select, *zero.inputs, *one.inputs),
                    lambda values: (one if values[select] else zero).at(values))


def cost_of(function: Function) -> int | None:
    """How many LUTs a function takes, if not too many."""
    if len(function.inputs) <= len(PINS):
        return 1
    return None if choice_of(function) is None else 2


def choice_of(function: Function) -> Bit | None:
    """The input that leaves functions of four inputs; None if there is none, or one LUT does."""
    if len(function.inputs) <= len(PINS):
        return None
    return next((bit for bit in function.inputs if all(
        len(function.cofactor(bit, value).inputs) <= len(PINS) for value in (0, 1))), None)


def _lut(function: Function, bit: Bit) -> Cell:
    pins = [*function.inputs, *"0" * (len(PINS) - len(function.inputs))]
    return {"type": LUT, "parameters": {"INIT": function.init()},
            "port_directions": dict.fromkeys(PINS, "input") | {"Z": "output"},
            "connections": {**{pin: [wire] for pin, wire in zip(PINS, pins, strict=True)},
                            "Z": [bit]}}


def _count(netlist: Netlist) -> int:
    return sum(cell["type"] == LUT for cell in netlist.cells.values())
