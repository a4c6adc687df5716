"""What takes long to compute, kept between runs.

A result is a file in the cache, named after a digest of all that it was computed from, so it is
never out of date. Its name and a checksum are in it, and what is damaged or misnamed is computed
again. The oldest files go when there are too many. A store that cannot be read or written costs
time and nothing else. `MICROTRON_ANEW=1` leaves the store alone: everything is computed, for
measurements.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from .cache import DIGEST, cache_folder, read_entry, write_entry
from .errors import MicrotronError

FOLDER = "results"              # of the cache
ANEW = "MICROTRON_ANEW"
MOST_BYTES = 128 << 20          # of all results together, each in whole blocks
BLOCK = 4096                    # bytes that even the smallest file takes
LEFT = 0.75                     # the part that stays when some have to go
CHECKED_AFTER = 256             # results that are written before somebody looks at the sum again
ROOT = Path(__file__).resolve().parents[1]
STARTED = time.time_ns()        # sources written later are not what this process runs


class Store:
    """Results by name. Those of all processes are in one folder."""

    def __init__(self, most_bytes: int = MOST_BYTES):
        self.most_bytes = most_bytes
        self.written = 0

    def get(self, name: str) -> bytes | None:
        """What was kept under a name; None if there is nothing, or nothing whole."""
        if not is_used():
            return None
        try:
            return read_entry(cache_folder(FOLDER) / name, name)
        except MicrotronError:              # there is no place for a cache
            return None

    def put(self, name: str, result: bytes) -> None:
        """Keep a result under a name, if possible."""
        if not is_used():
            return
        with suppress(OSError, MicrotronError):
            folder = cache_folder(FOLDER)
            folder.mkdir(parents=True, exist_ok=True)
            if self.written % CHECKED_AFTER == 0:
                _make_room(folder, self.most_bytes)
            write_entry(folder / name, name, result)
            self.written += 1


STORE = Store()


def is_used() -> bool:
    """Whether results are kept and found, as the environment says."""
    wish = os.environ.get(ANEW, "")
    if wish not in ("", "0", "1"):
        raise MicrotronError(f"{ANEW} is {wish[:40]!r}, but must be 1, to compute everything anew, "
                             f"or 0")
    return wish != "1"


def name_of(kind: str, *parts: bytes) -> str:
    """The name of a result of some kind that was computed from these parts."""
    digest = DIGEST(kind.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return f"{kind}-{digest.hexdigest()[:40]}"


@cache
def sources(folders: tuple[str, ...], root: Path = ROOT) -> bytes:
    """A digest of the names and texts of all modules in these folders of ours: what is computed by
    them depends on it. A list of files would one day be incomplete."""
    return DIGEST(b"".join(_source(folder, root) for folder in folders)).digest()


@cache
def _source(folder: str, root: Path) -> bytes:
    """The digest of one folder and all below: several ask for the same ones."""
    digest = DIGEST()
    for path, folders, files in os.walk(root / folder):
        folders.sort()
        for name in sorted(each for each in files if each.endswith(".py")):
            with open(os.path.join(path, name), "rb") as file:
                text = file.read()
                if os.fstat(file.fileno()).st_mtime_ns > STARTED:
                    text += os.urandom(16)          # a digest that nobody else will ask for
            digest.update(f"{os.path.relpath(path, root)}/{name} {len(text)}\n".encode())
            digest.update(text)
    return digest.digest()


def _make_room(folder: Path, most_bytes: int) -> None:
    """Remove the oldest results if all together are too large."""
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):       # another process makes room, too
            status = entry.stat()
            found.append((status.st_mtime_ns, -(-status.st_size // BLOCK) * BLOCK, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= most_bytes:
        return
    for _, size, path in sorted(found):
        if total <= LEFT * most_bytes:
            break
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= size
