"""Reads bitstreams back: for which part one is, and whether there is a design in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from .facts import BoardError

ECP5_PREAMBLE = bytes((0xFF, 0xFF, 0xBD, 0xB3))
ECP5_VERIFY_ID, ECP5_NOTHING = 0xE2, 0xFF
ECP5_FRAMES = (0x82, 0xB8)                      # as they are, or compressed
# Commands in front of frames, and how many bytes each has behind its three of operands.
ECP5_COMMANDS = {0x3B: 0, 0x22: 4, 0x46: 0, 0x02: 8, 0xC2: 4, 0x79: 0, ECP5_VERIFY_ID: 4}
GOWIN_ID, GOWIN_FRAMES = 0x06, 0x3B
GOWIN_TAIL = 8                                  # bytes behind a frame: its checksum and a pause


@dataclass(frozen=True)
class Bitstream:
    idcode: int
    frames: int                 # of configuration memory that are written
    set_bytes: int              # of what is written, those that are not zero


def read_ecp5(data: bytes) -> Bitstream:
    """A bitstream for ECP5: commands, as Project Trellis documents them."""
    start = data.find(ECP5_PREAMBLE)
    if start < 0:
        raise BoardError("there is no preamble of an ECP5 bitstream")
    position, idcode = start + len(ECP5_PREAMBLE), None
    while position + 4 <= len(data):
        command = data[position]
        if command == ECP5_NOTHING:
            position += 1
            continue
        if command in ECP5_FRAMES and idcode is not None:
            frames = int.from_bytes(data[position + 2:position + 4], "big")
            return Bitstream(idcode, frames, sum(map(bool, data[position + 4:])))
        if command not in ECP5_COMMANDS:
            raise BoardError(f"the bitstream has {command:#04x} at {position:,}, which is no "
                             "command that comes before frames")
        if command == ECP5_VERIFY_ID:
            idcode = int.from_bytes(data[position + 4:position + 8], "big")
        position += 4 + ECP5_COMMANDS[command]
    raise BoardError("the bitstream ends before it writes frames")


def read_gowin(data: bytes) -> Bitstream:
    """A bitstream for Gowin: a line of binary digits for each command, and then for each frame."""
    idcode, frames = 0, None
    rest: list[bytes] = []
    for line in data.decode("ascii", "replace").splitlines():
        if line.startswith("//") or not line.strip():
            continue
        if set(line) - {"0", "1"} or len(line) % 8:
            raise BoardError("the bitstream is not lines of binary digits")
        content = int(line, 2).to_bytes(len(line) // 8, "big")
        if frames is None and content[0] == GOWIN_ID:
            idcode = int.from_bytes(content[-4:], "big")
        elif frames is None and content[0] == GOWIN_FRAMES:
            frames = int.from_bytes(content[2:4], "big")
        elif frames is not None:
            rest.append(content)
    if not frames or len(rest) < frames:
        raise BoardError("the bitstream ends before its frames do")
    set_bytes = sum(sum(map(bool, each[:-GOWIN_TAIL])) for each in rest[:frames])
    return Bitstream(idcode, frames, set_bytes)


def check_ecp5(name: str, idcode: int) -> None:
    _check(read_ecp5, name, idcode)


def check_gowin(name: str, idcode: int) -> None:
    _check(read_gowin, name, idcode)


def _check(read: Callable[[bytes], Bitstream], name: str, idcode: int) -> None:
    """The step of a build: the right part, and not empty."""
    found = read(Path(name).read_bytes())
    if found.idcode != idcode:
        raise BoardError(f"{name} is for a part with the code {found.idcode:#010x}, but the board "
                         f"has {idcode:#010x}")
    if not found.frames or not found.set_bytes:
        raise BoardError(f"{name} holds no design")
    Path("bitstream.json").write_text(json.dumps(asdict(found)), encoding="utf-8")
