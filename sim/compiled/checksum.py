"""A checksum of sources, for caches of compiled code.

numba drops a cached function when its file changes, but not when a function it was compiled from
in another file does. A parameter whose default is such a number is part of the signature by which
a cached function is found. Whole folders are covered: a list of files would be incomplete one day,
and then cycles would be wrong without a word.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CYCLE = ("isa", "sim/llvm", "sim/twins", "sim/cycle")       # what the timing is compiled from
FUNCTIONAL = ("isa", "sim/compiled", "sim/functional")          # and what the data is


@cache
def checksum(folders: tuple[str, ...], root: Path = ROOT) -> int:
    """Different when the name or the text of any module in these folders is."""
    number = 0
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        number = zlib.crc32(path.name.encode() + b"\0" + path.read_bytes(), number)
    return number
