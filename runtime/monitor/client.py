"""Talks with a board's monitor: memory, images, runs. Frames are checked, and asked for again."""

from __future__ import annotations

import struct
from typing import Protocol
from zlib import crc32

from ...base.classes.dataclass import dataclass
from ...base.errors import ExecutionError
from ...isa.registers import REGISTER_BYTES
from .protocol import ANSWER, MARK, PIECE, Frame, Kind, Outcome, Status

TRIES = 3                       # of a question whose answer does not come, or comes damaged
ANSWER_PATIENCE = 20_000_000    # cycles that an answer may take, but for that of a run
LONGEST = 60                    # characters of what a board says instead of an answer


HELLO = struct.Struct("<5I")


class Line(Protocol):
    """A serial line. Patience is in cycles of the board's clock."""

    def write(self, data: bytes) -> None: ...

    def read(self, count: int, patience: int) -> bytes:
        """So many bytes, or fewer if they do not come in time."""


class RefusedError(ExecutionError):
    """The monitor did not do what it was asked to."""

    def __init__(self, message: str, status: Status, details: tuple[int, ...] = ()):
        super().__init__(message)
        self.status, self.details = status, details


@dataclass(frozen=True)
class Hello:
    """What a monitor tells of its system."""

    version: int
    clock_hz: int
    memory: int                 # address
    memory_bytes: int
    registers: int              # address of the accelerator's


class Monitor:
    """The monitor at the other end of a line. `address` says in messages where that is."""

    def __init__(self, line: Line, address: str = ""):
        self._line = line
        self.place = f"{address}: " if address else ""
        self._number = 0
        self.text = bytearray()         # what it said to people

    def hello(self) -> Hello:
        told = self.ask(Kind.HELLO, b"")
        if len(told) != HELLO.size:
            raise self._odd(Kind.HELLO, told)
        return Hello(*HELLO.unpack(told))

    def read(self, address: int, size: int) -> bytes:
        """Bytes of memory; whole words are asked for."""
        first, last = address // 4 * 4, -(-(address + size) // 4) * 4
        found = b""
        for place in range(first, last, PIECE):
            count = min(PIECE, last - place)
            piece = self.ask(Kind.READ, struct.pack("<II", place, count))
            if len(piece) != count:
                raise self._odd(Kind.READ, piece)
            found += piece
        return found[address - first:address - first + size]

    def write(self, address: int, data: bytes) -> None:
        """Change memory; the rest of the first and the last word stays."""
        before, after = address % 4, -(address + len(data)) % 4
        if before:
            data = self.read(address - before, before) + data
        if after:
            data += self.read(address - before + len(data), after)
        for place in range(0, len(data), PIECE):
            self.ask(Kind.WRITE, struct.pack("<I", address - before + place)
                     + data[place:place + PIECE])

    def read32(self, address: int) -> int:
        return int.from_bytes(self.read(address, REGISTER_BYTES), "little")

    def write32(self, address: int, value: int) -> None:
        self.write(address, value.to_bytes(REGISTER_BYTES, "little"))

    def load(self, image: bytes, needed: int, address: int) -> None:
        """Announce an image, and write it."""
        self.ask(Kind.LOAD, struct.pack("<III", len(image), needed, crc32(image)))
        self.write(address, image)

    def run(self, timeout: int, patience: int) -> Outcome:
        """Run the image. `timeout` is when an accelerator hangs, `patience` how long we wait, both
        in cycles."""
        return self._outcome(Kind.RUN, self._answer(Kind.RUN, struct.pack("<I", timeout), patience,
                                                    tries=1))

    def outcome(self) -> Outcome:
        """How the last run ended."""
        return self._outcome(Kind.OUTCOME, self._answer(Kind.OUTCOME, b"", ANSWER_PATIENCE, TRIES))

    def ask(self, kind: Kind, payload: bytes) -> bytes:
        """The answer to a question, without its status; refused if that is not good."""
        answer = self._answer(kind, payload, ANSWER_PATIENCE, TRIES)
        known, details = int.from_bytes(answer[:4], "little"), answer[4:]
        if len(answer) < 4 or known not in set(Status):
            raise self._odd(kind, answer)
        status = Status(known)
        if status is not Status.DONE:
            numbers = struct.unpack_from(f"<{len(details) // 4}I", details)
            raise RefusedError(self.place + _refusal(kind, payload, status, numbers), status,
                               numbers)
        return details

    def _outcome(self, kind: Kind, answer: bytes) -> Outcome:
        if len(answer) != Outcome.FORMAT.size or answer[0] not in set(Status):
            raise self._odd(kind, answer)
        return Outcome.decode(answer)

    def _odd(self, kind: Kind, answer: bytes) -> ExecutionError:
        return ExecutionError(f"{self.place}the board's answer to {kind.name.lower()} is none: "
                              f"{len(answer)} bytes, {answer[:16].hex(' ')}; its monitor is not "
                              "this kit's")

    def _answer(self, kind: Kind, payload: bytes, patience: int, tries: int) -> bytes:
        self._number = (self._number + 1) % 256
        question = Frame(kind, self._number, payload).encode()
        said = len(self.text)
        for _ in range(tries):
            self._line.write(question)
            answer = self._receive(patience)
            if (answer is not None and answer.kind == kind + ANSWER
                    and answer.number == self._number):
                return answer.payload
        heard = bytes(self.text[said:][-LONGEST:]).decode("ascii", "replace").strip()
        hint = "; is the bitstream with the monitor loaded?" if kind is Kind.HELLO else ""
        raise ExecutionError(f"{self.place}the board does not answer {kind.name.lower()}"
                             f"{f'; it said {heard!r}' if heard else ''}{hint}")

    def _receive(self, patience: int) -> Frame | None:
        """The next frame; None if there is none in time, or a damaged one."""
        mark = b""
        while mark != MARK:
            byte = self._line.read(1, patience)
            if not byte:
                self.text += mark
                return None
            self.text += mark[:1] if len(mark) == 2 else b""
            mark = (mark + byte)[-2:]
        head = self._line.read(4, patience)
        if len(head) < 4:
            return None
        kind, number, length = struct.unpack("<BBH", head)
        rest = self._line.read(length + 4, patience)
        if len(rest) < length + 4 or crc32(head + rest[:-4]) != int.from_bytes(rest[-4:], "little"):
            return None
        return Frame(kind, number, rest[:-4])


def _refusal(kind: Kind, payload: bytes, status: Status, details: tuple[int, ...]) -> str:
    place = ""
    if kind in (Kind.READ, Kind.WRITE):
        place = f" at {int.from_bytes(payload[:4], 'little'):#x}"
    if status is Status.TOO_LARGE and details:
        needed = int.from_bytes(payload[4:8], "little")
        return f"the image needs {needed:,} bytes of memory, but the board has {details[0]:,}"
    return f"the board refused to {kind.name.lower()}{place}: {status.name.lower()}"
