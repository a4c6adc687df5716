"""The cache: what takes long to make, kept between runs, in entries that prove what they are.

An entry is a file that is named after a digest of its key, so it is never out of date:

    SHA-256 of its key │ SHA-256 of that digest and the content │ content

The key is all that the content was made from, or a digest of it. A file that was truncated,
overwritten or copied from another entry is no entry: whoever asks for it makes it again. The
entries that were not used for longest go when there are too many. A cache that cannot be read or
written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .atomic_files import write_atomically
from .errors import MicrotronError
from .progress import print_note

DIGEST = hashlib.sha256
SIZE = DIGEST().digest_size
ANEW = "MICROTRON_ANEW"
BLOCK = 4096                    # bytes that even the smallest file takes
LEFT = 0.75                     # the part that stays when some have to go
CHECKED_AFTER = 256             # entries that are written before somebody looks at the sum again


class Cache:
    """Entries by key, as `cache_key` gives it. Those of all processes are in one folder.

    part          the folder inside the cache
    most_bytes    of all entries together, each in whole blocks
    skipped_anew  whether MICROTRON_ANEW=1 leaves it alone, for measurements
    name          of what cannot be kept, to tell people so; without one nothing is said
    """

    def __init__(self, part: str, most_bytes: int, *, skipped_anew: bool = False,
                 name: str = "") -> None:
        self.part, self.most_bytes = part, most_bytes
        self.skipped_anew, self.name = skipped_anew, name
        self.written = 0

    def is_used(self) -> bool:
        """Whether entries are written and found, as the environment says."""
        return not (self.skipped_anew and _is_anew())

    def get(self, key: str) -> bytes | None:
        """The content under a key; None if there is nothing, or nothing whole."""
        if not self.is_used():
            return None
        try:
            path = cache_folder(self.part) / key
        except MicrotronError:              # there is no place for a cache
            return None
        content = read_entry(path, key)
        if content is not None:
            with suppress(OSError):         # another process made room, or it is not ours
                os.utime(path)
        return content

    def put(self, key: str, content: bytes) -> bool:
        """Keep content under a key, if possible, and say whether it was."""
        if not self.is_used():
            return False
        try:
            folder = cache_folder(self.part)
            with suppress(OSError):         # writing says what is wrong
                folder.mkdir(parents=True, exist_ok=True)
            if self.written % CHECKED_AFTER == 0:
                _make_room(folder, self.most_bytes)
            write_entry(folder / key, key, content)
        except MicrotronError as error:
            if self.name:
                print_note(f"{self.name} cannot be kept (MICROTRON_CACHE names another folder): "
                           f"{error}")
            return False
        self.written += 1
        return True

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """The content under a key, which `make` returns if there is none yet."""
        content = self.get(key)
        if content is None:
            content = make()
            self.put(key, content)
        return content


RESULTS = Cache("results", 128 << 20, skipped_anew=True)    # what was computed: programs, cycles
CODE = Cache("code", 512 << 20, name="compiled code")       # machine code for this processor


def cache_key(kind: str, *parts: bytes | str) -> str:
    """The key of something of some kind that was made from these parts. It can name a file."""
    digest = DIGEST(kind.encode())
    for part in parts:
        content = part if isinstance(part, bytes) else part.encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return f"{kind.replace(' ', '_')}-{digest.hexdigest()[:40]}"


def cache_folder(part: str) -> Path:
    """A folder in $MICROTRON_CACHE, or in microtron in the user's cache."""
    return Path(os.environ.get("MICROTRON_CACHE") or _users() / "microtron").absolute() / part


def read_entry(path: Path, key: str) -> bytes | None:
    """The content of an entry; None if there is none, or it is damaged or another key's."""
    try:
        entry = path.read_bytes()
    except OSError:
        return None
    known, checksum, content = entry[:SIZE], entry[SIZE:2 * SIZE], entry[2 * SIZE:]
    whole = known == DIGEST(key.encode()).digest() and checksum == _checksum(known, content)
    return content if whole else None


def write_entry(path: Path, key: str, content: bytes) -> None:
    """Write an entry, whole or not at all. Its folder must be there."""
    known = DIGEST(key.encode()).digest()
    write_atomically(path, (known, _checksum(known, content), content))


def _checksum(known: bytes, content: bytes) -> bytes:
    digest = DIGEST(known)
    digest.update(content)
    return digest.digest()


def _is_anew() -> bool:
    wish = os.environ.get(ANEW, "")
    if wish not in ("", "0", "1"):
        raise MicrotronError(f"{ANEW} is {wish[:40]!r}, but must be 1, to compute everything anew, "
                             f"or 0")
    return wish == "1"


def _make_room(folder: Path, most_bytes: int) -> None:
    """Remove the entries that were not used for longest if all together are too large."""
    found = []
    with suppress(OSError):                         # no folder: writing says so
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
        with suppress(OSError):
            os.unlink(path)
        total -= size


def _users() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise MicrotronError("this user has no home folder; name a folder for what is kept with "
                             "MICROTRON_CACHE") from None
