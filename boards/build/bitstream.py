"""The last check of a build: a bitstream is for the board's part, and not empty."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..facts.errors import BoardError

REPORT = "bitstream.json"


@dataclass(frozen=True)
class Bitstream:
    """What reading a bitstream back finds."""

    idcode: int
    frames: int             # of configuration memory that are written
    set_bits: int           # in all that is written
    part: str = ""          # as the file names it, if it does


def check_and_report(name: str, found: Bitstream, idcode: int) -> None:
    """Refuse a bitstream for another part, or one that configures nothing; then report it."""
    if found.idcode != idcode:
        raise BoardError(f"{name} is for a part with the code {found.idcode:#010x}, but the board "
                         f"has {idcode:#010x}")
    if not found.frames or not found.set_bits:
        raise BoardError(f"{name} holds no design")
    Path(REPORT).write_text(json.dumps(asdict(found)), encoding="utf-8")
