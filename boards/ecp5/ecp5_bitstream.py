"""Reads an ECP5 bitstream back: its part, and whether it configures anything."""

from __future__ import annotations

from pathlib import Path

from ..build.bitstream import Bitstream, check_and_report
from ..facts.errors import BoardError

PREAMBLE = bytes((0xFF, 0xFF, 0xBD, 0xB3))
VERIFY_ID, NOTHING = 0xE2, 0xFF
FRAMES = (0x82, 0xB8)                      # as they are, or compressed
# Commands in front of frames, and how many bytes each has behind its three of operands.
COMMANDS = {0x3B: 0, 0x22: 4, 0x46: 0, 0x02: 8, 0xC2: 4, 0x79: 0, VERIFY_ID: 4}


def read_bitstream(data: bytes) -> Bitstream:
    """A bitstream for ECP5: commands, as Project Trellis documents them."""
    start = data.find(PREAMBLE)
    if start < 0:
        raise BoardError("there is no preamble of an ECP5 bitstream")
    position, idcode = start + len(PREAMBLE), None
    while position + 4 <= len(data):
        command = data[position]
        if command == NOTHING:
            position += 1
            continue
        if command in FRAMES and idcode is not None:
            frames = int.from_bytes(data[position + 2:position + 4], "big")
            return Bitstream(idcode, frames, sum(map(int.bit_count, data[position + 4:])))
        if command not in COMMANDS:
            raise BoardError(f"the bitstream has {command:#04x} at {position:,}, which is no "
                             "command that comes before frames")
        if command == VERIFY_ID:
            idcode = int.from_bytes(data[position + 4:position + 8], "big")
        position += 4 + COMMANDS[command]
    raise BoardError("the bitstream ends before it writes frames")


def check(name: str, idcode: int) -> None:
    """The step of a build."""
    check_and_report(name, read_bitstream(Path(name).read_bytes()), idcode)
