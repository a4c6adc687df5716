"""Where what takes long to make is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(part: str) -> Path:
    """A folder in $MICROTRON_CACHE, or in microtron in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MICROTRON_CACHE") or Path(home) / "microtron").absolute() / part
