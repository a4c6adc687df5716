"""A checksum of modules, for caches of compiled code.

numba drops a cached function when its file changes, but not when a function it was compiled from
in another file does. A parameter whose default is such a number is part of the signature by which
a cached function is found.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from types import ModuleType


def checksum(*modules: ModuleType) -> int:
    """Different when the text of any of these modules is."""
    return zlib.crc32(b"".join(Path(str(module.__file__)).read_bytes() for module in modules))
