"""Wires and switches of a part, from Project X-Ray's database: which tile's wires are one node, and
the resistances, capacitances and delays of all of them.

Delays are those of the slow corner, in nanoseconds; resistances are in ohms, capacitances in
femtofarads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ...facts.errors import BoardError

Wire = tuple[int, int, str]         # column and row of a tile, and the name in there
Neighbour = tuple[int, int, str, str]   # columns and rows away, type of tile, and the name there
NANOSECONDS = 1e-6                  # ohms × femtofarads
LUT_THROUGH = 0.157                 # a LUT that passes on an input: the slowest of timings/*.sdf


class SwitchText(TypedDict, total=False):
    """As the database's JSON has it: delays are four, the least and the most of each corner."""

    wire: str
    delay: list[str] | None
    res: str | None
    in_cap: str | None
    cap: str | None


class PipText(TypedDict):
    src_wire: str
    dst_wire: str
    is_directional: str
    src_to_dst: SwitchText
    dst_to_src: SwitchText


class SiteText(TypedDict):
    prefix: str
    name: str
    site_pins: dict[str, SwitchText | None]


class TileText(TypedDict):
    wires: dict[str, dict[str, str] | None]
    pips: dict[str, PipText]
    sites: list[SiteText]


class PlaceText(TypedDict):
    type: str
    grid_x: int
    grid_y: int


class JointText(TypedDict):
    grid_deltas: tuple[int, int]
    tile_types: tuple[str, str]
    wire_pairs: list[tuple[str, str]]


@dataclass(frozen=True)
class Switch:
    """A PIP, or a pin of a site."""

    delay: float
    resistance: float               # of what drives the wire behind it; 0: it drives nothing anew
    capacitance: float              # that the wire in front of it sees


@dataclass(frozen=True)
class Node:
    """Wires of tiles that are one piece of metal."""

    number: int
    resistance: float
    capacitance: float


class Fabric:
    """One part of a family's folder, as xc7z020 of zynq7."""

    def __init__(self, family: Path, device: str):
        self.family = family
        grid: dict[str, PlaceText] = json.loads(_read(family / device / "tilegrid.json"))
        self.tiles = {(tile["grid_x"], tile["grid_y"]): tile["type"] for tile in grid.values()}
        self.neighbours: dict[str, dict[str, list[Neighbour]]] = {}
        joints: list[JointText] = json.loads(_read(family / device / "tileconn.json"))
        for each in joints:
            (right, down), (first, second) = each["grid_deltas"], each["tile_types"]
            for one, other in each["wire_pairs"]:
                self._connect(first, one, (right, down, second, other))
                self._connect(second, other, (-right, -down, first, one))
        self.types: dict[str, TileType] = {}
        self.nodes: dict[Wire, Node] = {}

    def _connect(self, kind: str, wire: str, other: Neighbour) -> None:
        self.neighbours.setdefault(kind, {}).setdefault(wire, []).append(other)

    def tile_type(self, kind: str) -> TileType:
        if kind not in self.types:
            text: TileText = json.loads(_read(self.family / f"tile_type_{kind}.json"))
            self.types[kind] = TileType(text)
        return self.types[kind]

    def type_at(self, wire: Wire) -> TileType:
        kind = self.tiles.get(wire[:2])
        if kind is None:
            raise BoardError(f"{self.family}: there is no tile at X{wire[0]}Y{wire[1]}")
        return self.tile_type(kind)

    def node(self, wire: Wire) -> Node:
        """What a wire of a tile belongs to; wires inside of sites are their own."""
        found = self.nodes.get(wire)
        if found is None:
            members = [wire] if "." in wire[2] else self._members(wire)
            values = [self.type_at(each).wires.get(each[2], (0.0, 0.0)) for each in members]
            found = Node(len(self.nodes), sum(each[0] for each in values),
                         sum(each[1] for each in values))
            for each in members:
                self.nodes[each] = found
        return found

    def _members(self, start: Wire) -> list[Wire]:
        members, seen = [start], {start}
        for column, row, name in members:
            kind = self.tiles[column, row]
            for right, down, other, wire in self.neighbours.get(kind, {}).get(name, ()):
                place = column + right, row + down
                if self.tiles.get(place) == other and (*place, wire) not in seen:
                    seen.add((*place, wire))
                    members.append((*place, wire))
        return members


class TileType:
    """Switches, wires and sites of one kind of tile."""

    def __init__(self, text: TileText):
        self.wires = {name: (float(each.get("res") or 0), float(each.get("cap") or 0))
                      for name, each in text["wires"].items() if each}
        self.pips: dict[tuple[str, str], Switch] = {}
        for each in text["pips"].values():
            one, other = each["src_wire"], each["dst_wire"]
            self.pips[one, other] = _switch(each["src_to_dst"])
            if not int(each["is_directional"]):
                self.pips[other, one] = _switch(each["dst_to_src"])
        self.pins: dict[str, Switch] = {}           # of sites, by the tile's wire
        self.pin_wires: dict[str, str] = {}         # the same wires, by SLICE_X0Y0.A1
        for site in text["sites"]:
            for name, pin in site["site_pins"].items():
                if pin is not None:
                    self.pins[pin["wire"]] = _switch(pin)
                    self.pin_wires[f"{site['prefix']}_{site['name']}.{name}"] = pin["wire"]

    def switch(self, source: str, target: str) -> Switch:
        """What connects two wires: a PIP, a pin of a site, a LUT that passes on an input, or
        nothing that takes time, inside of a site."""
        found = self.pips.get((source, target))
        if found is not None:
            return found
        inside = "." in source, "." in target
        if inside == (True, True):
            return Switch(0, 0, 0)
        if inside == (False, False) and source in self.pins and target in self.pins:
            into, out = self.pins[source], self.pins[target]
            return Switch(into.delay + LUT_THROUGH + out.delay, out.resistance, into.capacitance)
        pin = self.pins.get(target if inside[0] else source)
        if pin is None:
            raise BoardError(f"the database has no switch from {source} to {target}")
        return pin


def _switch(text: SwitchText) -> Switch:
    """The most of the slow corner."""
    delays = text.get("delay")
    delay = float(delays[3]) if delays else 0.0
    return Switch(delay, float(text.get("res") or 0),
                  float(text.get("in_cap") or text.get("cap") or 0))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BoardError(f"{path}: {error.strerror}; Project X-Ray's database has it") from None
