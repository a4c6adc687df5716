"""LiteX's bridge over Ethernet, by its public wire format (Etherbone over UDP).

A packet is a header and a record; a record writes words from an address on and then reads words
from a list of addresses. What it reads comes back as a record of writes, whose address is the
number that the request named. Writes alone bring no answer, so each of ours also reads its last
word: datagrams get lost, and a word that is missing must not go unnoticed.
"""

from __future__ import annotations

import socket
import struct
import time

from .link import WORD, LinkError, WordLink

HEADER = struct.pack(">HBBI", 0x4E6F, 0x10, 0x44, 0)        # magic, version 1, sizes of 32 bits
PORT = 1234
MOST_WORDS = 32                 # in one packet: bridges have small buffers
ATTEMPTS = 5


class EtherboneLink(WordLink):
    """A board on the network.

    seconds     to wait for an answer, `ATTEMPTS` times
    """

    def __init__(self, address: str, registers: int, memory: range, *, seconds: float = 0.5):
        super().__init__(address, registers, memory)
        self.seconds = seconds
        self._number = 0
        host, _, port = address.partition(":")
        if port and not (port.isdigit() and 0 < int(port) < 1 << 16):
            raise LinkError(f"{address}: the port is {port!r}, but must be a number to 65535")
        try:
            found = socket.getaddrinfo(host, int(port or PORT), type=socket.SOCK_DGRAM)
            family, kind, protocol, _, place = found[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.connect(place)
        except OSError as error:
            raise LinkError(f"{address}: there is no way to the board: {error.strerror}") from None

    def read_words(self, address: int, count: int) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            part = min(count - len(words), MOST_WORDS)
            first = address + WORD * len(words)
            words += self._ask(b"", 0, [first + WORD * number for number in range(part)], ATTEMPTS)
        return words

    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        for first in range(0, len(words), MOST_WORDS):
            part = words[first:first + MOST_WORDS]
            place = address + WORD * first
            writes = struct.pack(f">I{len(part)}I", place, *part)
            self._ask(writes, len(part), [place + WORD * (len(part) - 1)],
                      ATTEMPTS if repeatable else 1)

    def close(self) -> None:
        self._socket.close()

    def _ask(self, writes: bytes, count: int, reads: list[int], attempts: int) -> list[int]:
        for _ in range(attempts):
            self._number = self._number + 1 & 0xFFFF_FFFF
            record = struct.pack(">BBBB", 0, 0x0F, count, len(reads)) + writes + struct.pack(
                f">I{len(reads)}I", self._number, *reads)
            try:
                self._socket.send(HEADER + record)
                answer = self._answer(len(reads))
            except OSError as error:
                raise LinkError(f"{self.address}: the link is gone: {error.strerror}") from None
            if answer is not None:
                return answer
        raise LinkError(f"{self.address}: the board has not answered for "
                        f"{attempts * self.seconds:g} s; is it switched on, with a bitstream that "
                        "has LiteX's bridge?")

    def _answer(self, count: int) -> list[int] | None:
        """The words that were asked for last; None if they do not come. Old and odd packets are
        passed over."""
        size = len(HEADER) + 8 + WORD * count
        end = time.monotonic() + self.seconds
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(2048)
            except TimeoutError:
                return None
            if len(data) == size and data[:2] == HEADER[:2] and data[10] == count:
                number, *words = struct.unpack_from(f">I{count}I", data, len(HEADER) + 4)
                if number == self._number:
                    return words
        return None
