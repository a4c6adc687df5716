"""The cache: where it is, and entries that prove what they are.

An entry is a file:

    SHA-256 of its key │ SHA-256 of that digest and the content │ content

The key is all that the content was made from, or a digest of it. A file that was truncated,
overwritten or copied from another entry is no entry: whoever asks for it makes it again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .atomic_files import write_atomically
from .errors import MicrotronError

DIGEST = hashlib.sha256
SIZE = DIGEST().digest_size


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


def _users() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise MicrotronError("this user has no home folder; name a folder for what is kept with "
                             "MICROTRON_CACHE") from None
