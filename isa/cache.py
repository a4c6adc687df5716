"""Where what takes long to make is kept."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import MicrotronError


def cache_folder(part: str) -> Path:
    """A folder in $MICROTRON_CACHE, or in microtron in the user's cache."""
    return Path(os.environ.get("MICROTRON_CACHE") or _users() / "microtron").absolute() / part


def _users() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise MicrotronError("this user has no home folder; name a folder for what is kept with "
                             "MICROTRON_CACHE") from None
