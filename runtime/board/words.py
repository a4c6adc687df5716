"""Words over bridges that have no checksum: nothing is believed that was said only once.

    read        twice, until two readings agree
    write       what is there is read, what differs is written, and that is read again

A damaged word is so found out and written anew. A damaged command is worse: it may have written
somewhere else. It leaves a trace, since the words that it was to change are what they were; that
is why they are read before. Then nobody knows what else has changed, and the link is given up.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import numpy as np

from ...isa.registers import Status, offset_of
from ..devices.device import Bytes
from .link import POLL_SECONDS, WORD, LinkError

PIECE = 1024                    # words that are compared, and read or written again, as one
ATTEMPTS = 3


class WordLink(ABC):
    """A link that moves whole words over a bus which holds the registers as well as memory.

    Bytes at the edges of what is written keep company with those beside them: their word is read,
    changed and written back.
    """

    most_words: int                 # that one command writes

    def __init__(self, address: str, registers: int, memory: range):
        self.address, self.memory = address, memory
        self.is_sound = True
        self._registers = registers

    @abstractmethod
    def read_words(self, address: int, count: int) -> list[int]:
        """What the other side says, once."""

    @abstractmethod
    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        """One command. If it may have been lost, one that is not `repeatable` must not be sent
        again."""

    @abstractmethod
    def close(self) -> None: ...

    def settle(self) -> None:       # noqa: B027 (few have something to do)
        """Let what is still on its way come, and forget it; for ways on which answers have no
        number."""

    def read_registers(self, offset: int, count: int) -> list[int]:
        return self._read_twice(self._registers + offset, count)

    def set_registers(self, offset: int, values: list[int]) -> None:
        self._change(self._registers + offset, values)

    def write_register(self, offset: int, value: int) -> None:
        self._check()
        self.write_words(self._registers + offset, [value], repeatable=False)

    def read(self, address: int, size: int) -> Bytes:
        before = address % WORD
        count = -(-(before + size) // WORD)
        words = np.array(self._read_twice(address - before, count), "<u4")
        return words.view(np.uint8)[before:before + size].copy()

    def write(self, address: int, data: Bytes) -> None:
        before, after = address % WORD, -(address + len(data)) % WORD
        parts = [self.read(address - before, before), data, self.read(address + len(data), after)]
        words = np.concatenate(parts).view("<u4")
        self._change(address - before, words.tolist())

    def wait(self, seconds: float) -> bool:
        """A single answer is enough as long as the program runs: a wrong one is asked for again."""
        self._check()
        end = time.monotonic() + seconds
        place = self._registers + offset_of("status")
        while True:
            status, = self.read_words(place, 1)
            if not status & Status.RUNNING and not self._read_twice(place, 1)[0] & Status.RUNNING:
                return True
            if time.monotonic() > end:
                return False
            time.sleep(POLL_SECONDS)

    def _read_twice(self, address: int, count: int) -> list[int]:
        """What two readings say."""
        self._check()
        words: list[int] = []
        while len(words) < count:
            words += self._read_piece_twice(address + WORD * len(words),
                                            min(count - len(words), PIECE))
        return words

    def _read_piece_twice(self, address: int, count: int) -> list[int]:
        for _ in range(ATTEMPTS):
            first, second = (self.read_words(address, count) for _ in range(2))
            if first == second:
                return first
            self.settle()
        place, one, other = _difference(address, first, second)
        raise LinkError(f"{self.address}: what is at {place:#x} was read as {one:#010x} and as "
                        f"{other:#010x}, and {ATTEMPTS} times two readings differed; is the line "
                        "disturbed, or too long for its speed?")

    def _change(self, address: int, words: list[int]) -> None:
        self._check()
        for first in range(0, len(words), PIECE):
            self._change_piece(address + WORD * first, words[first:first + PIECE])

    def _change_piece(self, address: int, words: list[int]) -> None:
        """Have the words in their place. What is there already is not written, but read twice."""
        before = self.read_words(address, len(words))
        for _ in range(ATTEMPTS):
            changes = self._changes(before, words)
            self.is_sound = not changes         # until it is known what came of them
            for change in changes:
                self.write_words(address + WORD * change.start, words[change], repeatable=True)
            after = self.read_words(address, len(words))
            if after != words:
                self.settle()
                after = self._read_piece_twice(address, len(words))
            if changes:
                self._check_arrived(address, words, before, after)
            self.is_sound = True
            if after == words:
                return
            before = after
        self.is_sound = False
        place, wanted, found = _difference(address, words, after)
        raise LinkError(f"{self.address}: {wanted:#010x} was written to {place:#x} {ATTEMPTS} "
                        f"times, but {found:#010x} is there; is the line disturbed, or too long "
                        "for its speed?")

    def _changes(self, before: list[int], words: list[int]) -> list[slice]:
        """What the commands write: each begins and ends with a word that it changes, so that none
        of them, and no end of one, can get lost without a trace."""
        changes = []
        for first in range(0, len(words), self.most_words):
            numbers = [number for number in range(first, min(first + self.most_words, len(words)))
                       if words[number] != before[number]]
            if numbers:
                changes.append(slice(numbers[0], numbers[-1] + 1))
        return changes

    def _check_arrived(self, address: int, words: list[int], before: list[int],
                       after: list[int]) -> None:
        """Words that are wrong are those of a damaged command if they are what they were."""
        for number, (wanted, old, new) in enumerate(zip(words, before, after, strict=True)):
            if new == old != wanted:
                raise LinkError(f"{self.address}: {wanted:#010x} was written to "
                                f"{address + WORD * number:#x}, but what was there, {old:#010x}, "
                                "still is: a command was damaged on its way and may have changed "
                                "other memory, or this one is broken; open the board anew")

    def _check(self) -> None:
        if not self.is_sound:
            raise LinkError(f"{self.address}: a command to the board was damaged on its way "
                            "before, and may have changed its memory; open the board anew")


def _difference(address: int, some: list[int], others: list[int]) -> tuple[int, int, int]:
    """The first place that is not the same, and both values."""
    return next((address + WORD * number, one, other)
                for number, (one, other) in enumerate(zip(some, others, strict=True))
                if one != other)
