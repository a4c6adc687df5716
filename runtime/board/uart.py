"""LiteX's bridge over a serial line, by its public wire format (UARTBone).

    write       01 count address:4 word:4 …         nothing comes back
    read        02 count address:4                  word:4 … comes back

Addresses count words; all numbers have their high bytes first. There is no checksum, and nothing
says which question an answer belongs to: were a count damaged, answers would be out of step with
questions from then on. So each reading ends with a register that never changes.
"""

from __future__ import annotations

import struct
from abc import abstractmethod

from ...isa.registers import offset_of
from .link import WORD, LinkError
from .serial import QUIET_SECONDS, SerialLine
from .words import ATTEMPTS, WordLink

WRITE, READ = 1, 2
MOST_WORDS = 128                # in one command; its count has 8 bits


class BridgeLink(WordLink):
    """A board behind anything that carries bytes both ways."""

    most_words = MOST_WORDS
    _mark: int | None = None        # what the register reads that never changes

    @abstractmethod
    def send(self, data: bytes) -> None: ...

    @abstractmethod
    def receive(self, size: int) -> bytes:
        """So many bytes, or LinkError."""

    @abstractmethod
    def forget(self) -> None:
        """What came unasked: a greeting, or the rest of an answer that was given up."""

    def settle(self) -> None:
        self.forget()

    def read_words(self, address: int, count: int) -> list[int]:
        for _ in range(ATTEMPTS):
            if self._mark is None:
                self.settle()
                self._mark = self._identity()
            words = [word for first in range(0, count, MOST_WORDS)
                     for word in self._ask(address + WORD * first, min(count - first, MOST_WORDS))]
            if (found := self._identity()) == self._mark:
                return words
            known, self._mark = self._mark, None        # whichever of both was damaged
        raise LinkError(f"{self.address}: the board's answers do not fit the questions: its "
                        f"identity is read as {known:#010x} and as {found:#010x}; does another "
                        "program use the line?")

    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        self.send(_command(WRITE, len(words), address) + struct.pack(f">{len(words)}I", *words))

    def _identity(self) -> int:
        word, = self._ask(self._registers + offset_of("identity"), 1)
        return word

    def _ask(self, address: int, count: int) -> tuple[int, ...]:
        self.forget()
        self.send(_command(READ, count, address))
        return struct.unpack(f">{count}I", self.receive(WORD * count))


class UartLink(BridgeLink):
    """A board on a serial line.

    speed       bits a second; the bridge's own
    seconds     without a byte after which the board is given up
    quiet       without a byte after which none is on its way
    """

    def __init__(self, address: str, registers: int, memory: range, *, speed: int,
                 seconds: float = 2.0, quiet: float = QUIET_SECONDS):
        super().__init__(address, registers, memory)
        self._line = SerialLine(address, speed=speed, seconds=seconds, quiet=quiet)

    def send(self, data: bytes) -> None:
        self._line.send(data)

    def receive(self, size: int) -> bytes:
        data = self._line.receive(size, self._line.seconds)
        if len(data) < size:
            raise LinkError(f"{self.address}: the board sent {len(data)} of {size} bytes, then "
                            f"nothing for {self._line.seconds:g} s; is the bitstream with LiteX's "
                            "bridge loaded?")
        return data

    def forget(self) -> None:
        self._line.forget()

    def settle(self) -> None:
        self._line.settle()

    def close(self) -> None:
        self._line.close()


def _command(kind: int, count: int, address: int) -> bytes:
    return struct.pack(">BBI", kind, count, address // WORD)
