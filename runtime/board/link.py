"""Links: how a driver reaches an accelerator's registers and the memory that it works in."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from ...isa.errors import ExecutionError
from ...isa.registers import REGISTER_BYTES, Status, offset_of
from ..device import Bytes

POLL_SECONDS = 0.001
WORD = REGISTER_BYTES


class LinkError(ExecutionError):
    """A board that is not there, or that stopped answering."""


class Link(Protocol):
    """One accelerator on one board. Addresses are those that the accelerator has on its bus.

    Whatever the other side does, a call returns or raises LinkError after a bounded time.
    """

    @property
    def address(self) -> str:
        """Where the board is, for messages."""

    @property
    def memory(self) -> range:
        """The addresses that programs may use."""

    def read_register(self, offset: int) -> int: ...

    def write_register(self, offset: int, value: int) -> None: ...

    def read(self, address: int, size: int) -> Bytes: ...

    def write(self, address: int, data: Bytes) -> None: ...

    def wait(self, seconds: float) -> bool:
        """Until the accelerator has stopped; False if the time was not enough."""

    def close(self) -> None: ...


def poll(link: Link, seconds: float) -> bool:
    """Wait by asking again and again, for links that bring no interrupt."""
    end = time.monotonic() + seconds
    while Status.RUNNING in Status(link.read_register(offset_of("status"))):
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True


class WordLink(ABC):
    """A link that moves whole words over a bus which holds the registers as well as memory.

    Bytes at the edges of what is written keep company with those beside them: their word is read,
    changed and written back.
    """

    def __init__(self, address: str, registers: int, memory: range):
        self.address, self.memory = address, memory
        self._registers = registers

    @abstractmethod
    def read_words(self, address: int, count: int) -> list[int]: ...

    @abstractmethod
    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        """If the words may have been lost, one that is not `repeatable` must not be sent again."""

    @abstractmethod
    def close(self) -> None: ...

    def read_register(self, offset: int) -> int:
        value, = self.read_words(self._registers + offset, 1)
        return value

    def write_register(self, offset: int, value: int) -> None:
        self.write_words(self._registers + offset, [value], repeatable=False)

    def read(self, address: int, size: int) -> Bytes:
        before = address % WORD
        count = -(-(before + size) // WORD)
        words = np.array(self.read_words(address - before, count), "<u4")
        return words.view(np.uint8)[before:before + size].copy()

    def write(self, address: int, data: Bytes) -> None:
        before, after = address % WORD, -(address + len(data)) % WORD
        parts = [self.read(address - before, before), data, self.read(address + len(data), after)]
        words = np.concatenate(parts).view("<u4")
        self.write_words(address - before, words.tolist(), repeatable=True)

    def wait(self, seconds: float) -> bool:
        return poll(self, seconds)
