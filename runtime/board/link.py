"""Links: how a driver reaches an accelerator's registers and the memory that it works in."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from ...base.errors import ExecutionError
from ...isa.registers import REGISTER_BYTES, Status, offset_of
from ..devices.device import Bytes

POLL_SECONDS = 0.001
WORD = REGISTER_BYTES


class LinkError(ExecutionError):
    """A board that is not there, that stopped answering, or whose answers cannot be trusted."""


class Link(Protocol):
    """One accelerator on one board. Addresses are those that the accelerator has on its bus.

    Whatever the other side does, a call returns or raises LinkError after a bounded time. What it
    returns is what the board holds, and what it wrote is there: a way that may damage either finds
    out, and puts it right or raises LinkError.
    """

    @property
    def address(self) -> str:
        """Where the board is, for messages."""

    @property
    def memory(self) -> range:
        """The addresses that programs may use."""

    @property
    def is_sound(self) -> bool:
        """False once memory may have changed where nobody meant it to: nothing that was loaded
        counts any more, and every call raises LinkError."""

    def read_registers(self, offset: int, count: int) -> list[int]:
        """Registers side by side that keep their values meanwhile."""

    def set_registers(self, offset: int, values: list[int]) -> None:
        """Registers side by side that do nothing but keep what is written. Twice is as good as
        once."""

    def write_register(self, offset: int, value: int) -> None:
        """A register that does something. It is written once at most; whether it was, the caller
        has to find out."""

    def read(self, address: int, size: int) -> Bytes: ...

    def write(self, address: int, data: Bytes) -> None: ...

    def wait(self, seconds: float) -> bool:
        """Until the accelerator has stopped; False if the time was not enough."""

    def close(self) -> None: ...


def registers_of(link: Link, names: Iterable[str]) -> dict[str, int]:
    """Registers by their names, read at once: they should not be far from each other."""
    offsets = {name: offset_of(name) for name in names}
    first, last = min(offsets.values()), max(offsets.values())
    values = link.read_registers(first, (last - first) // WORD + 1)
    return {name: values[(offset - first) // WORD] for name, offset in offsets.items()}


def poll(link: Link, seconds: float) -> bool:
    """Wait by asking again and again, for links that bring no interrupt."""
    end = time.monotonic() + seconds
    while Status.RUNNING in Status(link.read_registers(offset_of("status"), 1)[0]):
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True
