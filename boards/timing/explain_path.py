"""Which lines of our sources a path through LUTs goes through.

Synthesis rearranges plain logic and forgets where it came from. Registers, memories, multipliers
and carry chains keep their names. Between two of them, the path is looked up in the netlist that
has the gates as they were written: the longest way there that connects the same two pins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..build.bare import NAME
from .critical_paths import Path
from .timing_netlist import Bit, Cell, Netlist


@dataclass(frozen=True)
class PathSegment:
    """A stretch of a path that one line of source describes."""

    source: str | None
    names: tuple[str, ...]      # of nets, in our sources
    gates: int
    cell: str | None = None     # set where it is no plain logic
    time: float | None = None   # when the signal leaves it, where this is known


class Explainer:
    """Explains paths of one design."""

    def __init__(self, gates: Netlist):
        self.gates = gates
        self.order = _gates_in_order(gates)

    def explain(self, path: Path) -> list[PathSegment]:
        """The places of a path, in order; neighbours of the same line are one."""
        found = [self._end(path.start, path.pin_out, None)]
        here = self._output(path.start, path.pin_out)
        for step in path.steps:
            cell = self.gates.cells.get(step.cell.name)
            if cell is None or step.out not in cell.outputs:
                continue            # plain logic
            found += self._between(here, cell.inputs.get(step.pin))
            names = self._names(cell.outputs[step.out], cell.source)
            found.append(PathSegment(cell.source, names, 0, cell.kind, step.time))
            here = cell.outputs[step.out]
        found += self._between(here, self._input(path.end, path.pin_in))
        found.append(self._end(path.end, path.pin_in, path.time))
        return list(_merge(found))

    def _end(self, cell: Cell | None, pin: str, time: float | None) -> PathSegment:
        if cell is None:
            return PathSegment(None, (_word(pin),), 0, "port", time)
        known = self.gates.cells.get(cell.name, cell)
        name = _word(self.gates.name_of_cell(replace(known, source=cell.source)) or cell.name)
        return PathSegment(cell.source, (f"{name} {_pin(cell, pin)}".strip(),), 0, cell.kind, time)

    def _output(self, cell: Cell | None, pin: str) -> Bit | None:
        if cell is None:
            return self.gates.inputs.get(pin)
        known = self.gates.cells.get(cell.name)
        return None if known is None else known.outputs.get(pin)

    def _input(self, cell: Cell | None, pin: str) -> Bit | None:
        if cell is None:
            return self.gates.outputs.get(pin)
        known = self.gates.cells.get(cell.name)
        return None if known is None else known.inputs.get(pin)

    def _between(self, start: Bit | None, end: Bit | None) -> list[PathSegment]:
        """The longest way through gates from one net to another."""
        if start is None or end is None or start == end:
            return []
        farthest: dict[Bit, tuple[int, Cell | None, Bit]] = {start: (0, None, start)}
        for cell in self.order:
            reached = [(farthest[bit][0] + 1, bit) for bit in cell.inputs.values()
                       if bit in farthest]
            if reached:
                distance, before = max(reached, key=lambda each: each[0])
                out, = cell.outputs.values()
                if out != start:
                    farthest[out] = distance, cell, before
        places: list[PathSegment] = []
        here = end
        while here != start and here in farthest:
            _, gate, before = farthest[here]
            assert gate is not None, "only the start has no gate"
            places.append(PathSegment(gate.source, self._names(here, gate.source), 1))
            here = before
        return places[::-1]

    def _names(self, bit: Bit, source: str | None) -> tuple[str, ...]:
        name = self.gates.name_of(bit, source)
        return () if name is None else (_word(name),)


def _gates_in_order(netlist: Netlist) -> list[Cell]:
    """Plain gates, each behind those it depends on."""
    gates = {name: cell for name, cell in netlist.cells.items() if cell.kind.startswith("$_")}
    drivers = {bit: name for name, cell in gates.items() for bit in cell.outputs.values()}
    order: dict[str, Cell] = {}
    for root in gates:
        stack = [root]
        while stack:
            name = stack[-1]
            missing = [drivers[bit] for bit in gates[name].inputs.values()
                       if bit in drivers and drivers[bit] not in order]
            if missing:
                stack += missing
            else:
                order[stack.pop()] = gates[name]
    return list(order.values())


def _word(name: str) -> str:
    """A name without its bit, and without the accelerator that all units are in."""
    return re.sub(r"\[\d+\]$", "", name.replace("\\", "").removeprefix(f"{NAME}."))


def _pin(cell: Cell, pin: str) -> str:
    return "" if cell.kind == "TRELLIS_FF" and pin in ("Q", "DI") else f".{pin}"


def _merge(places: list[PathSegment]) -> Iterator[PathSegment]:
    """Neighbours of the same line become one; gates without a line belong to what follows."""
    following = None
    known = []
    for place in reversed(places):
        following = following if place.cell is None and place.source is None else place.source
        known.append(replace(place, source=following))
    held, *rest = reversed(known)
    for place in rest:
        if held.source == place.source and held.cell in (None, place.cell):
            names = tuple(dict.fromkeys((*held.names, *place.names)))
            held = replace(place, names=names, gates=held.gates + place.gates)
        else:
            yield held
            held = place
    yield held
