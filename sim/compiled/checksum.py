"""A checksum of source files, for caches of compiled code.

Compiled code must never be older than its sources. numba notices when the file of a cached function
changes, but not when a function it calls in another file does; so kernels have a parameter whose
default is such a checksum, which makes it part of the signature that numba looks up. The code of
the cycle-exact simulator is kept under a name with the checksum in it. Whole folders are covered: a
list of files would one day be incomplete, and cycles would silently be wrong.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CYCLE = ("base", "isa", "sim/llvm", "sim/twins", "sim/cycle")   # what the timing is compiled from
FUNCTIONAL = ("base", "isa", "sim/compiled", "sim/functional")      # and what the data is


@cache
def checksum(folders: tuple[str, ...], root: Path = ROOT) -> int:
    """A number that changes with the name or the text of any module in these folders."""
    number = 0
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        number = zlib.crc32(path.name.encode() + b"\0" + path.read_bytes(), number)
    return number
