"""What goes over the serial line of a board's monitor: kinds, statuses, frames. Declared once; the
monitor's header is written from here.

    frame   A5 5A, kind, number, length (16 bits), payload, CRC-32 of all from the kind on
    answer  the same, with kind + 0x80 and the number of the question; begins with a status

Numbers are little-endian. What is not a frame is text for people.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from zlib import crc32

from ...base.classes.dataclass import dataclass

MARK = b"\xA5\x5A"
ANSWER = 0x80                   # added to the kind
BRIDGE_WRITE, BRIDGE_READ = 1, 2    # where a frame could begin: LiteX's bridge is wanted
PAYLOAD = 1028                  # bytes at most: an address, and a piece of memory
PIECE = PAYLOAD - 4
PATIENCE = 2_500_000            # cycles without a byte in the middle of a frame


class Kind(IntEnum):
    """What is asked of the monitor."""

    HELLO = 1                   # who are you?
    READ = 2                    # address, bytes: what is in memory, or in registers?
    WRITE = 3                   # address, words
    LOAD = 4                    # bytes, bytes needed, CRC-32 of an image that will be written
    RUN = 5                     # cycles until an accelerator hangs: run the image, then tell
    OUTCOME = 6                 # how did the last run end?


class Status(IntEnum):
    """How it went."""

    DONE = 0
    BAD_FRAME = 1               # damaged on its way, or too long
    BAD_REQUEST = 2             # there is no such kind, or not with this payload
    BAD_ADDRESS = 3             # neither memory nor a register
    BUS_ERROR = 4               # nobody answered the processor
    TOO_LARGE = 5               # for the memory; what is there stays
    NO_IMAGE = 6                # none was announced
    BAD_IMAGE = 7               # what is in memory is not what was announced, or no image
    TRAP = 8                    # the processor met mcause at mepc, with mtval: the details
    NOT_AN_ACCELERATOR = 9      # its register (detail 0) is (1) instead of (2)
    WRONG_CONFIGURATION = 10    # the same, for a register that tells its configuration
    FAULT = 11                  # the accelerator stopped: cause, instruction
    HUNG = 12                   # the accelerator did not stop; it was reset
    DEAD = 13                   # it hung, and its memory did not become quiet
    KERNEL = 14                 # a stage on the processor met a bad index: kernel


@dataclass(frozen=True)
class Frame:
    kind: int
    number: int
    payload: bytes

    def encode(self) -> bytes:
        body = struct.pack("<BBH", self.kind, self.number, len(self.payload)) + self.payload
        return MARK + body + struct.pack("<I", crc32(body))


@dataclass(frozen=True)
class Outcome:
    """How a run ended, as the monitor tells it."""

    status: Status
    stage: int
    details: tuple[int, int, int, int]
    accelerator_cycles: int
    cycles: int

    FORMAT = struct.Struct("<II4IQQ")

    @classmethod
    def decode(cls, payload: bytes) -> Outcome:
        status, stage, a, b, c, d, accelerator, total = cls.FORMAT.unpack(payload)
        return cls(Status(status), stage, (a, b, c, d), accelerator, total)


def c_header() -> str:
    """The same for the monitor."""
    lines = ["/* Generated from runtime/monitor/protocol.py. */", "#ifndef PROTOCOL_H",
             "#define PROTOCOL_H", ""]
    numbers = {"FIRST": MARK[0], "SECOND": MARK[1], "ANSWER": ANSWER,
               "BRIDGE_WRITE": BRIDGE_WRITE, "BRIDGE_READ": BRIDGE_READ, "PAYLOAD": PAYLOAD,
               "PATIENCE": PATIENCE}
    lines += [f"#define MONITOR_{name} {value:#x}u" for name, value in numbers.items()]
    for kind in (Kind, Status):
        name = f"microtron_monitor_{kind.__name__.lower()}"
        lines += ["", f"enum {name} {{", *(f"    {name.upper()}_{each.name} = {each.value},"
                                           for each in kind), "};"]
    return "\n".join([*lines, "", "#endif"]) + "\n"
