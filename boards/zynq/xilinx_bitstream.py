"""Reads bitstreams of Xilinx 7 back, and turns them into what Linux loads.

A .bit file is a header of named fields, then words of 32 bits, high bytes first: packets that write
registers of the configuration logic, after a word to find their alignment by.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...base.errors import MicrotronError
from ..build.bitstream import Bitstream
from .frames import FRAME_WORDS

SYNC = 0xAA99_5566
FRAME_DATA, IDCODE = 2, 12          # registers
WRITE = 2                           # what a packet does
HEADER_FIELDS = b"abcd"             # design, part, date and time; then e, the length of the rest


def read_bitstream(data: bytes, name: str) -> Bitstream:
    """What a .bit file says about itself."""
    part, words = _parse_header(data, name)
    synchronized = words.index(SYNC) if SYNC in words else None
    if synchronized is None:
        raise MicrotronError(f"{name}: there is no synchronization word {SYNC:#x} in it")
    idcode, frame_words = 0, []
    for register, written in _register_writes(words[synchronized + 1:], name):
        if register == IDCODE and written:
            idcode = written[0]
        if register == FRAME_DATA:
            frame_words += written
    return Bitstream(part=part, idcode=idcode, frames=len(frame_words) // FRAME_WORDS,
                     set_bits=sum(map(int.bit_count, frame_words)))


def to_linux_image(data: bytes, name: str) -> bytes:
    """A .bit file as the FPGA manager of Linux takes it: no header, low bytes first."""
    _, words = _parse_header(data, name)
    return struct.pack(f"<{len(words)}I", *words)


def _parse_header(data: bytes, name: str) -> tuple[str, list[int]]:
    """The part in the header, and the words after it."""
    try:
        length, = struct.unpack_from(">H", data)
        place = 2 + length + 2              # a field without a name, then a length of one
        fields = {}
        for letter in HEADER_FIELDS:
            key, size = struct.unpack_from(">BH", data, place)
            if key != letter:
                raise MicrotronError(f"{name}: not a .bit file: field {chr(letter)} is missing")
            fields[letter] = data[place + 3:place + 3 + size].rstrip(b"\0").decode("ascii")
            place += 3 + size
        key, size = struct.unpack_from(">BI", data, place)
        body = data[place + 5:place + 5 + size]
    except (struct.error, UnicodeDecodeError):
        raise MicrotronError(f"{name}: not a .bit file: its header is damaged") from None
    if key != ord("e") or len(body) != size or size % 4:
        raise MicrotronError(f"{name}: it holds {len(body):,} bytes, but its header says {size:,}")
    return fields[ord("b")], list(struct.unpack(f">{size // 4}I", body))


def _register_writes(words: list[int], name: str) -> Iterator[tuple[int, list[int]]]:
    """Registers and what is written to them; a long write names its register in the packet
    before."""
    place, register = 0, 0
    while place < len(words):
        kind, does = words[place] >> 29, words[place] >> 27 & 3
        if kind == 1:
            register, count = words[place] >> 13 & 0x3FFF, words[place] & 0x7FF
        elif kind == 2:
            count = words[place] & 0x7FF_FFFF
        else:
            raise MicrotronError(f"{name}: word {place} after the synchronization, "
                                 f"{words[place]:#010x}, is no packet")
        written = words[place + 1:place + 1 + count]
        if len(written) != count:
            raise MicrotronError(f"{name}: it ends inside a packet of {count:,} words")
        if does == WRITE:
            yield register, written
        place += 1 + count
