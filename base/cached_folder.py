"""Folders in the cache: made once, whole or not at all, and checked before they are used.

Beside a folder lies its manifest, an entry of the cache with the size and the checksum of every
file. A folder that differs from it, or has none, is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from .atomic_files import lock_file
from .cache import cache_folder, read_entry, write_entry
from .errors import MicrotronError
from .progress import announce, print_note

MANIFEST = ".manifest"          # appended to the folder's name
Manifest = dict[str, list[int | str]]       # path inside → size and checksum

_checked: dict[Path, list[tuple[int, ...]]] = {}    # the state of files in which they were whole


def cached_folder(part: str, name: str, made_from: tuple[str, ...], make: Callable[[Path], None],
                  *, work: str = "", checksums: bool = True) -> Path:
    """The folder that `make` fills, called only if there is no whole one. One process makes it,
    others wait, and a stopped one leaves nothing.

    part        the folder inside the cache that it is in
    made_from   all that decides its content, besides the name
    work        what is being done, to tell people
    checksums   of all files; without them only sizes are checked, for folders of gigabytes
    """
    folder, key = folder_for(part, name, made_from), _key(name, made_from)

    def announce_and_make(temporary: Path) -> None:
        with announce(work) if work else nullcontext():
            make(temporary)

    try:
        if not _is_whole(folder, key):
            with lock_file(Path(f"{folder}.lock"),
                           f"waiting for another process that makes {folder.name}"):
                if not _is_whole(folder, key):
                    _replace(folder, key, announce_and_make, checksums)
    except OSError as error:
        raise _not_writable(folder.parent, error) from None
    return folder


def find_folder(part: str, name: str, made_from: tuple[str, ...]) -> Path | None:
    """A folder that has been made before, if it is whole."""
    folder = folder_for(part, name, made_from)
    return folder if _is_whole(folder, _key(name, made_from)) else None


def folder_for(part: str, name: str, made_from: tuple[str, ...]) -> Path:
    """Where a folder of this name and origin is, if it has been made."""
    return cache_folder(part) / f"{name}-{_digest(made_from)[:16]}"


def writable_folder(part: str) -> Path:
    """A part of the cache, for temporary files of tools."""
    folder = cache_folder(part)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _not_writable(folder, error) from None
    return folder


def _not_writable(folder: Path, error: OSError) -> MicrotronError:
    return MicrotronError(f"{folder}: cannot be written: {error.strerror}; name another folder "
                          "with MICROTRON_CACHE")


def _key(name: str, made_from: tuple[str, ...]) -> str:
    return f"{name} {_digest(made_from)}"


def _digest(made_from: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(made_from).encode()).hexdigest()


def _is_whole(folder: Path, key: str) -> bool:
    content = read_entry(_manifest_of(folder), key)
    if content is None:
        return False
    manifest: Manifest = json.loads(content)        # as we wrote it: its checksum is right
    paths = [folder / name for name in manifest]
    try:
        state = [_state(path) for path in paths]
        if not folder.is_dir() or [each[0] for each in state] != [
                size for size, _ in manifest.values()]:
            return False
        if _checked.get(folder) != state:
            if not all(_checksum(path) == checksum for path, (_, checksum)
                       in zip(paths, manifest.values(), strict=True) if checksum):
                return False
            _checked[folder] = state
    except OSError:
        return False
    return True


def _state(path: Path) -> tuple[int, ...]:
    """What changes if somebody writes to a file. Its size comes first."""
    status = os.stat(path, follow_symlinks=False)
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _checksum(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(folder: Path, key: str, make: Callable[[Path], None], checksums: bool) -> None:
    """Make a folder under the lock, which shows that nobody else is at work on it."""
    for abandoned in folder.parent.glob(f".{folder.name}.*"):
        _remove(abandoned)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        if folder.is_symlink() or folder.exists():
            print_note(f"{folder} is incomplete or damaged, and is made again")
            folder.rename(temporary / "damaged")        # whoever has it open may go on
            _remove(temporary / "damaged")
        make(temporary)
        write_entry(_manifest_of(folder), key, json.dumps(_list(temporary, checksums)).encode())
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _list(folder: Path, checksums: bool) -> Manifest:
    names = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(name, folder): [os.lstat(name).st_size,
                                            _checksum(Path(name)) if checksums else ""]
            for name in sorted(names)}


def _manifest_of(folder: Path) -> Path:
    return folder.with_name(folder.name + MANIFEST)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
