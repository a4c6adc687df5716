"""Reads a Gowin bitstream back: its part, and whether it configures anything."""

from __future__ import annotations

from pathlib import Path

from ..build.bitstream import Bitstream, check_and_report
from ..facts.errors import BoardError

IDCODE, FRAMES = 0x06, 0x3B
FRAME_TAIL = 8                                  # bytes behind a frame: its checksum and a pause



def read_bitstream(data: bytes) -> Bitstream:
    """A bitstream for Gowin: a line of binary digits for each command, and then for each frame."""
    idcode, frames = 0, None
    rest: list[bytes] = []
    for line in data.decode("ascii", "replace").splitlines():
        if line.startswith("//") or not line.strip():
            continue
        if set(line) - {"0", "1"} or len(line) % 8:
            raise BoardError("the bitstream is not lines of binary digits")
        content = int(line, 2).to_bytes(len(line) // 8, "big")
        if frames is None and content[0] == IDCODE:
            idcode = int.from_bytes(content[-4:], "big")
        elif frames is None and content[0] == FRAMES:
            frames = int.from_bytes(content[2:4], "big")
        elif frames is not None:
            rest.append(content)
    if not frames or len(rest) < frames:
        raise BoardError("the bitstream ends before its frames do")
    set_bits = sum(sum(map(int.bit_count, each[:-FRAME_TAIL])) for each in rest[:frames])
    return Bitstream(idcode, frames, set_bits)


def check(name: str, idcode: int) -> None:
    """The step of a build."""
    check_and_report(name, read_bitstream(Path(name).read_bytes()), idcode)
