"""Where things are on the boards: from `board:NAME@ADDRESS` to a link.

What a driver must know of a board are facts in its file: which flow builds it, its memory and its
clock. The files are read here as text: a driver needs no hardware description.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from ...base.checked_values import integer, quote
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ...base.near_misses import near
from ...base.text_file import read_text
from ..devices.device import BOARD, BOARD_FORM
from .etherbone import EtherboneLink
from .link import Link, LinkError
from .linux import open_linux
from .uart import UartLink

FILES = Path(__file__).parents[2] / "boards" / "facts" / "files"
FORM = f"{BOARD_FORM}, as in board:pynq_z2@/dev/uio0 or board:ulx3s@/dev/ttyUSB0"
# In a system of LiteX: where the accelerator's registers are, and memory.
LITEX_REGISTERS, LITEX_MEMORY = 0x9000_0000, 0x4000_0000
# The lower half of its memory is the processor's own, where there is one.
LITEX_SHARE, NO_PROCESSOR = 2, "none"
# What a board's file may say, as boards/facts/board.py has it.
MOST_BYTES, LEAST_HZ, MOST_HZ = 1 << 40, 1_000_000, 1_000_000_000
SERIAL, SPEED = re.compile(r"(/.*?)(?::(\d{1,9}))?"), 115200      # /dev/ttyUSB0:1000000


# Flows whose boards there is a driver for: on their own Linux, or at the other end of a link.
ON_LINUX, LINKED = ("zynq",), ("ecp5", "gowin")


@dataclass(frozen=True)
class Place:
    """A board, where it is, and the slower one of its system's and its accelerator's clocks, by
    which patience in cycles becomes seconds."""

    board: str
    address: str
    flow: str
    cpu: str
    memory_bytes: int
    hz: int

    @property
    def has_processor(self) -> bool:
        """In the same system as the accelerator, with the same memory."""
        return self.cpu != NO_PROCESSOR


def place_of(name: str) -> Place:
    """What the name of a board's device says."""
    board, at, address = name.removeprefix(BOARD).partition("@")
    if not (board and at and address):
        raise MicrotronError(f"{quote(name)} names no board and its address: it must be {FORM}")
    facts = _facts(board)
    return Place(Path(board).stem, address, _text(board, facts, "flow"), _text(board, facts, "cpu"),
                 _number(board, facts, "memory", "bytes", 0, MOST_BYTES), _slower_hz(board, facts))


def _slower_hz(board: str, facts: dict[str, object]) -> int:
    """Of the system's clock and the accelerator's, if that has one of its own."""
    hz, clock = _number(board, facts, "clock", "system_hz", LEAST_HZ, MOST_HZ), facts["clock"]
    if isinstance(clock, dict) and "accelerator_hz" in clock:
        return min(hz, _number(board, facts, "clock", "accelerator_hz", LEAST_HZ, MOST_HZ))
    return hz


def _text(board: str, facts: dict[str, object], key: str) -> str:
    value = facts.get(key)
    if not isinstance(value, str) or not value:
        raise _wrong(board, key, value, "a text")
    return value


def _number(board: str, facts: dict[str, object], table: str, key: str, low: int, high: int) -> int:
    inner = facts.get(table)
    if not isinstance(inner, dict):
        raise _wrong(board, table, inner, f"a table with {key}")
    value = integer(inner.get(key))
    if value is None or not low <= value <= high:
        raise _wrong(board, f"{table}: {key}", inner.get(key),
                     f"an integer from {low:,} to {high:,}")
    return value


def _wrong(board: str, key: str, value: object, right: str) -> MicrotronError:
    found = "is missing, and" if value is None else f"is {quote(value)}, but"
    return MicrotronError(f"{board}: {key} {found} must be {right}")


def _facts(board: str) -> dict[str, object]:
    known = sorted(path.stem for path in FILES.glob("*.toml"))
    path = FILES / f"{board}.toml" if board in known else Path(board)
    if board not in known and not board.endswith(".toml"):
        raise MicrotronError(f"there is no board {quote(board)}; there are {', '.join(known)}, or "
                             f"give a .toml file of your own{near(board, known)}")
    try:
        return tomllib.loads(read_text(path))
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):        # also numbers and nesting without end
        raise MicrotronError(f"{path}: not TOML") from None


def why_no_driver(flow: str) -> str:
    """Why nothing runs on a board."""
    return f"there is no driver for boards of {flow}"


def memory_of_programs(size: int, *, has_processor: bool) -> range:
    """The addresses that programs may use in a system of ours with so much memory."""
    return range(LITEX_MEMORY + (size // LITEX_SHARE if has_processor else 0), LITEX_MEMORY + size)


def link_to(place: Place) -> Callable[[], Link]:
    """How to open the link: device files of Linux, a serial line, or a host on the network."""
    address = place.address
    if place.flow in ON_LINUX:
        if not address.startswith("/"):
            raise LinkError(f"{address}: {place.board} is driven by its own Linux, through a file "
                            "such as /dev/uio0")
        return lambda: open_linux(address)
    if place.flow not in LINKED:
        raise LinkError(f"{place.board}: {why_no_driver(place.flow)}")
    if not place.memory_bytes:
        raise LinkError(f"{place.board}: its accelerator has no memory around it")
    memory = memory_of_programs(place.memory_bytes, has_processor=place.has_processor)
    if line := SERIAL.fullmatch(address):
        return lambda: UartLink(line[1], LITEX_REGISTERS, memory, speed=int(line[2] or SPEED))
    return lambda: EtherboneLink(address, LITEX_REGISTERS, memory)
