"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from .errors import MicrotronError


def write_atomically(path: Path, *parts: bytes | Iterable[bytes]) -> None:
    """Write to a temporary name beside `path`, then rename: a stopped run loses nothing.

    What is no regular file, such as a pipe or /dev/null, is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                _write(file, parts)
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, parts)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _write(file: BinaryIO, parts: Iterable[bytes | Iterable[bytes]]) -> None:
    for part in parts:
        for piece in (part,) if isinstance(part, bytes) else part:
            file.write(piece)
