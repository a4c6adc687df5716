"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import MicrotronError

Content = bytes | Iterable[bytes]


def write_atomically(path: Path, content: Content) -> None:
    """Write to a temporary name beside `path`, then rename: a stopped run loses nothing.

    Anything but a regular file, such as a pipe or /dev/null, is written to directly.
    """
    write_together({path: content})


def write_together(files: Mapping[Path, Content]) -> None:
    """Write several files. If one of them cannot be written, all remain as they were."""
    temporary: dict[Path, str] = {}
    try:
        for path, content in files.items():
            with _name_path_in_errors(path):
                if path.exists() and not path.is_file():
                    with path.open("wb") as file:
                        _write(file, content)
                    continue
                handle, temporary[path] = tempfile.mkstemp(dir=path.parent,
                                                           prefix=f".{path.name[:80]}.")
                with os.fdopen(handle, "wb") as file:
                    _write(file, content)
                os.chmod(temporary[path], 0o666 & ~_umask())
        for path, name in temporary.items():
            with _name_path_in_errors(path):
                os.replace(name, path)
    finally:
        for name in temporary.values():
            with suppress(FileNotFoundError):
                os.unlink(name)


def _write(file: BinaryIO, content: Content) -> None:
    for piece in (content,) if isinstance(content, bytes) else content:
        file.write(piece)


@contextmanager
def _name_path_in_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    """What new files must not allow; asking for it is only possible by changing it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
