"""Files appear whole or not at all, and locks in files let one process at a time make something."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import MicrotronError
from .progress import announce

Content = bytes | Iterable[bytes]
POLL = 0.05         # seconds between two tries to take a lock, where the wait is bounded


def check_folder(path: Path) -> None:
    """Refuse a file that cannot be written before minutes of work, not after."""
    if not path.absolute().parent.is_dir():
        raise MicrotronError(f"{path}: cannot be written: there is no folder "
                             f"{path.absolute().parent}")
    if path.is_dir():
        raise MicrotronError(f"{path}: cannot be written: it is a folder")
    if not os.access(path.absolute().parent, os.W_OK) and (path.is_file() or not path.exists()):
        raise MicrotronError(f"{path}: cannot be written: its folder is read-only")


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


@contextmanager
def lock_file(path: Path, waiting: str = "", *, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock in a file, which is created if need be. It goes with the process that holds it,
    however that ends.

    waiting     what to tell people if another process holds it; nothing if empty
    seconds     after which to go on without it; however long it takes unless given
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        if not _take(file.fileno()):
            with announce(waiting) if waiting else nullcontext():
                _wait(file.fileno(), seconds)
        yield


def _take(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(file: int, seconds: float | None) -> None:
    if seconds is None:
        fcntl.flock(file, fcntl.LOCK_EX)
        return
    end = time.monotonic() + seconds
    while not _take(file) and time.monotonic() < end:
        time.sleep(POLL)
