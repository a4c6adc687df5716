"""Reads text that a user names, which may be a device without end."""

from __future__ import annotations

import errno
from pathlib import Path

MOST_CHARACTERS = 1 << 20           # of a table; programs may have more


def read_text(path: Path, most: int = MOST_CHARACTERS) -> str:
    """UTF-8 text of at most so many characters. More of it is an OSError, as whatever else makes a
    file unreadable."""
    with path.open(encoding="utf-8") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} characters")
    return text
