"""Keeps what takes long to make: folders, by the content of what they are made from."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..isa.cache import cache_folder
from ..isa.errors import MicrotronError
from ..isa.progress import announced


def cached(name: str, made_from: tuple[str, ...], make: Callable[[Path], None],
           work: str) -> Path:
    """The folder that `make` fills, once for the same content; a stopped run leaves nothing."""
    folder = folder_of(name, made_from)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # whoever wants the same waits for it
        if not folder.exists():
            for abandoned in folder.parent.glob(f".{folder.name}.*"):
                shutil.rmtree(abandoned, ignore_errors=True)    # we hold the lock: nobody is there
            temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            try:
                with announced(work):
                    make(temporary)
                temporary.rename(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return folder


def folder_of(name: str, made_from: tuple[str, ...]) -> Path:
    """Where something of this name and content is kept, if it is."""
    key = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    return kept() / f"{name}-{key}"


def kept() -> Path:
    """The folder for all of it."""
    folder = cache_folder("fpga")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise MicrotronError(f"{folder}: cannot be written: {error.strerror}; name another folder "
                             "with MICROTRON_CACHE") from None
    return folder
