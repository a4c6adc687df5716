"""Keeps what takes long to make: folders, by the content of what they are made from."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...base.cache import cache_folder
from ...base.cached_folder import cached_folder
from ...base.errors import MicrotronError
from ...base.progress import announce

FOLDER = "fpga"                 # of the cache


def get_or_make(name: str, made_from: tuple[str, ...], make: Callable[[Path], None],
                work: str, *, checksums: bool = True) -> Path:
    """The folder that `make` fills, once for the same content; a stopped run leaves nothing."""
    def announce_and_make(folder: Path) -> None:
        with announce(work):
            make(folder)

    return cached_folder(folder_for(name, made_from), f"{name} {_digest(made_from)}",
                         announce_and_make, checksums=checksums)


def folder_for(name: str, made_from: tuple[str, ...]) -> Path:
    """Where something of this name and content is kept, if it is."""
    return cache_folder(FOLDER) / f"{name}-{_digest(made_from)[:16]}"


def _digest(made_from: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(made_from).encode()).hexdigest()


def cache_root() -> Path:
    """The folder for all of it."""
    folder = cache_folder(FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise MicrotronError(f"{folder}: cannot be written: {error.strerror}; name another folder "
                             "with MICROTRON_CACHE") from None
    return folder
