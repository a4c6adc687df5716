"""Keeps compiled code between runs, so that only the first one has to compile."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from ...isa.atomic import write_atomically
from ...isa.cache import cache_folder
from ...isa.errors import MicrotronError
from ...isa.progress import announced

DIGEST = hashlib.sha256


def kept(name: str, made_from: str, make: Callable[[], bytes]) -> bytes:
    """The result of `make`, from the cache if possible. It depends on `made_from` alone.

    A file in the cache is named after what its content was made from, so it is never out of date.
    It begins with a checksum, so that damaged code is never run.
    """
    key = DIGEST(made_from.encode()).hexdigest()[:16]
    path = cache_folder("code") / f"{name.replace(' ', '_')}-{key}.o"
    code = _read(path)
    if code is None:
        with announced(f"compiling the {name}, once: this takes some seconds"):
            code = make()
        _write(path, code)
    return code


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = DIGEST().digest_size
    return content[size:] if DIGEST(content[size:]).digest() == content[:size] else None


def _write(path: Path, code: bytes) -> None:
    """Keep the code if possible. If not, it can still be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, DIGEST(code).digest() + code)
    except (OSError, MicrotronError) as error:
        reason = f"{path.parent}: {error.strerror}" if isinstance(error, OSError) else error
        print(f"microtron: what was compiled cannot be kept: {reason}; name another folder with "
              f"MICROTRON_CACHE", file=sys.stderr)
