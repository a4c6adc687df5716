"""Reads bitstreams back: for which part one is, and whether there is a design in it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from .facts import BoardError

ECP5_PREAMBLE = bytes((0xFF, 0xFF, 0xBD, 0xB3))
VERIFY_ID, RESET_CRC, NO_OPERATION = 0xE2, 0x3B, 0xFF
WRITE_FRAMES, WRITE_COMPRESSED = 0x82, 0xB8
# Commands that carry more than their three operand bytes, and how many.
DATA = {0x22: 4, 0x02: 8, 0xC2: 4, 0xCE: 4, 0x46: 0, 0xB4: 4, 0xF6: 0, 0x7E: 0, VERIFY_ID: 4,
        RESET_CRC: 0, 0x79: 0, 0x5E: 0}


@dataclass(frozen=True)
class Bitstream:
    idcode: int
    frames: int                 # of configuration memory that are written
    set_bytes: int              # of what is written, those that are not zero


def read_ecp5(data: bytes) -> Bitstream:
    """A bitstream for ECP5, as Project Trellis documents its commands."""
    start = data.find(ECP5_PREAMBLE)
    if start < 0:
        raise BoardError("there is no preamble of an ECP5 bitstream")
    position, idcode = start + len(ECP5_PREAMBLE), None
    while position < len(data):
        command = data[position]
        if command == NO_OPERATION:
            position += 1
            continue
        if command == VERIFY_ID:
            idcode = int.from_bytes(data[position + 4:position + 8], "big")
        if command in (WRITE_FRAMES, WRITE_COMPRESSED):
            if idcode is None:
                raise BoardError("the bitstream writes frames before it names its part")
            frames = int.from_bytes(data[position + 2:position + 4], "big")
            return Bitstream(idcode, frames, sum(map(bool, data[position + 4:])))
        if command not in DATA:
            raise BoardError(f"the bitstream has a command {command:#04x} at {position:,}")
        position += 4 + DATA[command]
    raise BoardError("the bitstream ends before it writes frames")


def check_ecp5(name: str, idcode: int) -> None:
    """The step of a build: the right part, and not empty."""
    found = read_ecp5(Path(name).read_bytes())
    if found.idcode != idcode:
        raise BoardError(f"{name} is for a part with the code {found.idcode:#010x}, but the board "
                         f"has {idcode:#010x}")
    if not found.frames or not found.set_bytes:
        raise BoardError(f"{name} holds no design")
    Path("bitstream.json").write_text(json.dumps(asdict(found)), encoding="utf-8")
