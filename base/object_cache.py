"""Keeps compiled code between runs, so that only the first one has to compile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress

from .cache import DIGEST, cache_folder, read_entry, write_entry
from .errors import MicrotronError
from .progress import announce

FOLDER = "code"                 # of the cache


def kept(name: str, made_from: str, make: Callable[[], bytes], *,
         takes_long: bool = True) -> bytes:
    """The result of `make`, from the cache if possible. It depends on `made_from` alone. What
    takes long is announced.

    A file in the cache is named after what its content was made from, so it is never out of date.
    It says so itself and has a checksum: code that is damaged or another's is never run.
    """
    code = found(name, made_from)
    if code is None:
        with (announce(f"compiling the {name}, once: this takes some seconds") if takes_long
              else nullcontext()):
            code = make()
        keep(name, made_from, code)
    return code


def _file(name: str, made_from: str) -> str:
    return f"{name.replace(' ', '_')}-{DIGEST(made_from.encode()).hexdigest()[:40]}"


def _key(name: str, made_from: str) -> str:
    return f"{name}\n{made_from}"


def found(name: str, made_from: str) -> bytes | None:
    """What the cache has under a name that was made from this, if anything."""
    try:
        return read_entry(cache_folder(FOLDER) / _file(name, made_from), _key(name, made_from))
    except MicrotronError:                  # there is no place for a cache
        return None


def keep(name: str, made_from: str, code: bytes) -> bool:
    """Keep the code if possible, and say whether it was. If not, it can still be used."""
    try:
        path = cache_folder(FOLDER) / _file(name, made_from)
        with suppress(OSError):         # writing says what is wrong
            path.parent.mkdir(parents=True, exist_ok=True)
        write_entry(path, _key(name, made_from), code)
    except MicrotronError as error:
        print(f"microtron: compiled code cannot be kept (MICROTRON_CACHE names another folder): "
              f"{error}", file=sys.stderr)
        return False
    return True
