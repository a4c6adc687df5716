"""The pins that a shell uses: which groups, which signals, and how many places each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...base.near_misses import hint
from .board import Board, Wire
from .errors import BoardError

ANY, LANES = 0, -1              # numbers of places: any, and one for each eight of `dq`


@dataclass(frozen=True)
class Group:
    """Signals that it must have and may have, and their places; or those of which it has one."""

    needs: Mapping[str, int]
    may_have: Mapping[str, int]
    one_of: tuple[str, ...] = ()

    @property
    def signals(self) -> dict[str, int]:
        return {**self.needs, **self.may_have, **dict.fromkeys(self.one_of, 1)}


COMMAND = dict.fromkeys(("ras_n", "cas_n", "we_n"), 1)
CONTROL = dict.fromkeys(("cs_n", "cke"), 1)
VECTORS = {"a": ANY, "ba": ANY, "dq": ANY}
GROUPS = {
    "serial": Group({"tx": 1, "rx": 1}, {}),
    "sdram_clock": Group({"clk": 1}, {}),
    "sdram": Group({**VECTORS, **COMMAND}, {**CONTROL, "dm": LANES}),
    "ddram": Group({**VECTORS, **COMMAND, "clk_p": ANY, "dqs_p": LANES, "dm": LANES},
                   {**CONTROL, "odt": 1, "reset_n": 1}),
    "ethernet_clocks": Group({"tx": 1, "rx": 1}, {}),
    "ethernet": Group({"rx_ctl": 1, "rx_data": 4, "tx_ctl": 1, "tx_data": 4},
                      dict.fromkeys(("rst_n", "mdio", "mdc"), 1)),
    "reset": Group({}, {}, ("button", "button_n")),
    "led": Group({}, {}, ("user", "user_n")),
    "wifi": Group({"gpio0": 1}, {}),
}
MEMORIES = {"sdr": ("sdram_clock", "sdram"), "ddr3": ("ddram",)}
# What a board may have beside that: a button, a light, and what would reset the FPGA.
OPTIONAL = {"ecp5": ("reset", "led", "wifi"), "gowin": ("reset", "led")}


def check_pins(board: Board, place: str) -> None:
    """Refuse what the system of a board lacks, and what it does not know. The bare accelerator has
    ports of its own (bare_design.py); a hard processor's shell has no pins."""
    kind = board.memory.kind
    if kind == "processor":
        return
    if kind == "none":
        _check_known(board, ("bare", *GROUPS), place)
        return
    memory = MEMORIES[kind] if board.flow == "ecp5" else ()     # Gowin's is in the package
    network = ("ethernet_clocks", "ethernet") if board.ethernet is not None else ()
    needed = ("serial", *memory, *network)
    _check_known(board, (*needed, *OPTIONAL[board.flow]), place)
    for name in needed:
        if name not in board.pins:
            raise BoardError(f"{place}: pins: {name} is missing; it has "
                             f"{', '.join(GROUPS[name].needs)}")
    for name, wires in board.pins.items():
        _check_group(GROUPS[name], wires, f"{place}: pins: {name}")
    _check_distinct(board, place)


def _check_known(board: Board, known: tuple[str, ...], place: str) -> None:
    for name in board.pins:
        if name not in known:
            raise BoardError(f"{place}: pins: there is no {name!r}{_explain_unknown(name, board)}"
                             f"{hint(name, known)}")


def _explain_unknown(name: str, board: Board) -> str:
    kind = board.memory.kind
    if name in ("sdram_clock", "sdram", "ddram"):
        return f" for memory of kind {kind!r} on {board.flow}"
    return " without [ethernet]" if name.startswith("ethernet") else ""


def _check_group(group: Group, wires: Mapping[str, Wire], place: str) -> None:
    for name in wires:
        if name not in group.signals:
            raise BoardError(f"{place}: there is no {name!r}{hint(name, group.signals)}")
    for name in group.needs:
        if name not in wires:
            raise BoardError(f"{place}: {name} is missing")
    if group.one_of and len(wires) != 1:
        raise BoardError(f"{place}: there are {len(wires)} signals, but must be one: "
                         f"{' or '.join(group.one_of)}")
    data = len(wires["dq"].places) if "dq" in wires else 0
    if data % 8:
        raise BoardError(f"{place}: dq has {data} places, but must have 8 for each byte")
    for name, wire in wires.items():
        wanted, found = group.signals[name], len(wire.places)
        wanted = data // 8 if wanted == LANES else wanted
        if not found or (wanted != ANY and found != wanted):
            raise BoardError(f"{place}: {name} has {found} places, but must have "
                             f"{wanted or 'some'}")


def _check_distinct(board: Board, place: str) -> None:
    """No pin is for two signals."""
    taken = {board.clock.pin: "clock"}
    for group, wires in board.pins.items():
        for name, wire in wires.items():
            for each in wire.places:
                if each in taken:
                    raise BoardError(f"{place}: pins: {group}: {name} has {each!r}, which is the "
                                     f"place of {taken[each]} already")
                taken[each] = f"{group}: {name}"
