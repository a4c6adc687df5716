"""LiteX's bridge over a serial line, by its public wire format (UARTBone).

    write       01 count address:4 word:4 …         nothing comes back
    read        02 count address:4                  word:4 … comes back

Addresses count words; all numbers have their high bytes first.
"""

from __future__ import annotations

import os
import select
import struct
import termios
import time
import tty
from abc import abstractmethod

from .link import WORD, LinkError, WordLink

WRITE, READ = 1, 2
MOST_WORDS = 128                # in one command; its count has 8 bits
SPEEDS = {int(name[1:]): getattr(termios, name) for name in dir(termios)
          if name.startswith("B") and name[1:].isdigit() and name != "B0"}


class BridgeLink(WordLink):
    """A board behind anything that carries bytes both ways."""

    @abstractmethod
    def send(self, data: bytes) -> None: ...

    @abstractmethod
    def receive(self, size: int) -> bytes:
        """So many bytes, or LinkError."""

    @abstractmethod
    def forget(self) -> None:
        """What came unasked: a greeting, or the rest of an answer that was given up."""

    def read_words(self, address: int, count: int) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            part = min(count - len(words), MOST_WORDS)
            self.forget()
            self.send(_command(READ, part, address + WORD * len(words)))
            words += struct.unpack(f">{part}I", self.receive(WORD * part))
        return words

    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        for first in range(0, len(words), MOST_WORDS):
            part = words[first:first + MOST_WORDS]
            self.send(_command(WRITE, len(part), address + WORD * first)
                      + struct.pack(f">{len(part)}I", *part))


class UartLink(BridgeLink):
    """A board on a serial line.

    speed       bits a second; the bridge's own
    seconds     without a byte after which the board is given up
    """

    def __init__(self, address: str, registers: int, memory: range, *, speed: int,
                 seconds: float = 2.0):
        super().__init__(address, registers, memory)
        if speed not in SPEEDS:
            raise LinkError(f"{address}: speed is {speed}, but must be one of "
                            f"{', '.join(map(str, sorted(SPEEDS)))}")
        self.seconds = seconds
        try:
            self._file = os.open(address, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise LinkError(f"{address}: cannot be opened: {error.strerror}; is the board "
                            "connected and switched on?") from None
        try:
            tty.setraw(self._file)
            settings = termios.tcgetattr(self._file)
            settings[4] = settings[5] = SPEEDS[speed]
            termios.tcsetattr(self._file, termios.TCSANOW, settings)
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except termios.error as error:
            os.close(self._file)
            raise LinkError(f"{address}: not a serial line: {error.args[-1]}") from None

    def forget(self) -> None:
        try:
            termios.tcflush(self._file, termios.TCIFLUSH)
        except termios.error as error:
            raise LinkError(f"{self.address}: the link is gone: {error.args[-1]}") from None

    def close(self) -> None:
        os.close(self._file)

    def send(self, data: bytes) -> None:
        while data:
            _, ready, _ = select.select([], [self._file], [], self.seconds)
            if not ready:
                raise LinkError(f"{self.address}: the line takes nothing for {self.seconds:g} s")
            try:
                data = data[os.write(self._file, data):]
            except OSError as error:
                raise self._dropped(error) from None

    def receive(self, size: int) -> bytes:
        data = b""
        end = time.monotonic() + self.seconds
        while len(data) < size:
            ready, _, _ = select.select([self._file], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise LinkError(f"{self.address}: the board sent {len(data)} of {size} bytes, then "
                                f"nothing for {self.seconds:g} s; is the bitstream with LiteX's "
                                "bridge loaded?")
            try:
                came = os.read(self._file, size - len(data))
            except OSError as error:
                raise self._dropped(error) from None
            if not came:
                raise LinkError(f"{self.address}: the link is gone: the line was closed")
            data += came
            end = time.monotonic() + self.seconds
        return data

    def _dropped(self, error: OSError) -> LinkError:
        return LinkError(f"{self.address}: the link is gone: {error.strerror}")


def _command(kind: int, count: int, address: int) -> bytes:
    return struct.pack(">BBI", kind, count, address // WORD)
