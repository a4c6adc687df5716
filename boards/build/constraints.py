"""Pin constraints in the formats of the place-and-route tools."""

from __future__ import annotations

from collections.abc import Mapping

from ..facts.board import Wire


def format_lpf(wires: Mapping[str, Wire]) -> str:
    """Single-bit ports, as nextpnr-ecp5 reads them."""
    lines = []
    for port, wire in wires.items():
        site, = wire.places
        options = " ".join((f"IO_TYPE={wire.standard}", *wire.options))
        lines += [f'LOCATE COMP "{port}" SITE "{site}";', f'IOBUF PORT "{port}" {options};']
    return "\n".join((*lines, ""))


def format_cst(wires: Mapping[str, Wire]) -> str:
    """Single-bit ports, as Gowin's tools read them."""
    lines = []
    for port, wire in wires.items():
        site, = wire.places
        lines += [f'IO_LOC "{port}" {site};', f'IO_PORT "{port}" IO_TYPE={wire.standard};']
    return "\n".join((*lines, ""))
