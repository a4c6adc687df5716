"""LiteX's bridge over Ethernet, by its public wire format (Etherbone over UDP).

A packet is a header and a record; a record writes words from an address on and then reads words
from a list of addresses. What it reads comes back as a record of writes, whose address is the
number that the request named. Writes alone bring no answer, so each of ours also reads its last
word: datagrams get lost, and those that did are sent again. Whether their words arrived as they
were is another question, which `WordLink` asks.
"""

from __future__ import annotations

import socket
import struct
import time

from ...base.checked_values import quote, show_name
from .link import WORD, LinkError
from .words import WordLink

HEADER = struct.pack(">HBBI", 0x4E6F, 0x10, 0x44, 0)        # magic, version 1, sizes of 32 bits
PORT = 1234
MOST_WORDS = 32                 # in one packet: bridges have small buffers
ATTEMPTS = 5


class EtherboneLink(WordLink):
    """A board on the network.

    seconds     to wait for an answer, `ATTEMPTS` times
    """

    most_words = MOST_WORDS

    def __init__(self, address: str, registers: int, memory: range, *, seconds: float = 0.5):
        super().__init__(address, registers, memory)
        self.seconds = seconds
        self._number = 0
        host, port = _host_of(address)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, place = found[0]
            self._socket = socket.socket(family, kind, protocol)
        except UnicodeError:                    # a part of a name is empty, or too long
            raise LinkError(f"{show_name(address)}: no host has such a name; it must be one as "
                            "board.local, or a number as 192.168.1.50") from None
        except (OSError, ValueError) as error:  # also a zero byte
            raise _connection_error(address, error) from None
        try:
            self._socket.connect(place)
        except OSError as error:
            self._socket.close()
            raise _connection_error(address, error) from None

    def read_words(self, address: int, count: int) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            part = min(count - len(words), MOST_WORDS)
            first = address + WORD * len(words)
            words += self._ask(b"", 0, [first + WORD * number for number in range(part)], ATTEMPTS)
        return words

    def write_words(self, address: int, words: list[int], *, repeatable: bool) -> None:
        writes = struct.pack(f">I{len(words)}I", address, *words)
        self._ask(writes, len(words), [address + WORD * (len(words) - 1)],
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


def _host_of(address: str) -> tuple[str, int]:
    """A host and the port there. An address of IPv6 has colons, and before a port brackets."""
    if address.startswith("["):
        host, closed, rest = address[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not closed or colon not in ("", ":"):
            raise LinkError(f"{show_name(address)}: an address in brackets ends with ] or with a "
                            f"port, as in [::1]:{PORT}")
    elif address.count(":") > 1:
        host, port = address, ""
    else:
        host, _, port = address.partition(":")
    port = port or str(PORT)
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 1 << 16):
        raise LinkError(f"{show_name(address)}: the port is {quote(port)}, but must be a number to "
                        "65535")
    return host, int(port)


def _connection_error(address: str, error: Exception) -> LinkError:
    reason = error.strerror if isinstance(error, OSError) else error
    return LinkError(f"{show_name(address)}: there is no way to the board: {reason}")
