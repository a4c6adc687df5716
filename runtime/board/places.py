"""Where things are on the boards: from `board:NAME@ADDRESS` to a link.

What a driver must know of a board are facts in its file: which flow builds it, its memory and its
clock. The files are read here as text: a driver needs no hardware description.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...isa.errors import MicrotronError
from ...isa.text import near
from ...isa.values import shown
from ..device import BOARD, BOARD_FORM
from .etherbone import EtherboneLink
from .link import Link, LinkError
from .linux import open_linux
from .uart import UartLink

FILES = Path(__file__).parents[2] / "boards" / "files"
FORM = f"{BOARD_FORM}, as in board:pynq_z2@/dev/uio0 or board:ulx3s@/dev/ttyUSB0"
# In a system of LiteX: where the accelerator's registers are, and memory.
LITEX_REGISTERS, LITEX_MEMORY = 0x9000_0000, 0x4000_0000
# The lower half of its memory is the processor's own.
LITEX_SHARE = 2
SERIAL, SPEED = re.compile(r"(/.*?)(?::(\d{1,9}))?"), 115200      # /dev/ttyUSB0:1000000


@dataclass(frozen=True)
class Place:
    """A board, where it is, and the clock that its accelerator is given."""

    board: str
    address: str
    flow: str
    memory_bytes: int
    hz: int


def place_of(name: str) -> Place:
    """What the name of a board's device says."""
    board, at, address = name.removeprefix(BOARD).partition("@")
    if not (board and at and address):
        raise MicrotronError(f"{shown(name)} names no board and its address: it must be {FORM}")
    facts = _facts(board)
    try:
        return Place(Path(board).stem, address, str(facts["flow"]),
                     int(facts["memory"]["bytes"]), int(facts["clock"]["system_hz"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MicrotronError(f"{board}: the board's file lacks what a driver needs: {error}"
                             ) from None


def _facts(board: str) -> dict[str, Any]:
    known = sorted(path.stem for path in FILES.glob("*.toml"))
    path = FILES / f"{board}.toml" if board in known else Path(board)
    if board not in known and not board.endswith(".toml"):
        raise MicrotronError(f"there is no board {shown(board)}; there are {', '.join(known)}, or "
                             f"give a .toml file of your own{near(board, known)}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise MicrotronError(f"{path}: not TOML") from None


def link_to(place: Place) -> Callable[[], Link]:
    """How to open the link: device files of Linux, a serial line, or a host on the network."""
    address = place.address
    if place.flow == "zynq":
        if not address.startswith("/"):
            raise LinkError(f"{address}: {place.board} is driven by its own Linux, through a file "
                            "such as /dev/uio0")
        return lambda: open_linux(address)
    if place.flow not in ("ecp5", "gowin"):
        raise LinkError(f"{place.board}: there is no driver for boards of {place.flow}")
    if not place.memory_bytes:
        raise LinkError(f"{place.board}: its accelerator has no memory around it")
    memory = range(LITEX_MEMORY + place.memory_bytes // LITEX_SHARE,
                   LITEX_MEMORY + place.memory_bytes)
    if line := SERIAL.fullmatch(address):
        return lambda: UartLink(line[1], LITEX_REGISTERS, memory, speed=int(line[2] or SPEED))
    return lambda: EtherboneLink(address, LITEX_REGISTERS, memory)
