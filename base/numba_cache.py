"""numba's cache: compiling says so, and a cache that is damaged or cannot be written is no reason
to stop.

numba believes its files: a truncated one ends in an exception or worse, and of two processes that
save at once, one may find the other's code under its own signature. So its files are replaced by
entries of ours, with a checksum each and the signature inside. Of several processes that want a
function, one compiles it.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from .atomic_files import lock_file
from .cache import read_entry, write_entry
from .errors import MicrotronError
from .progress import announce
from .source_digest import PACKAGE, source_digest

Compiled: TypeAlias = Any   # of numba, which has no types: a function, or a part of it

PATIENCE = 120              # seconds for which another process may compile, and be waited for

_said: set[str] = set()     # what has been announced where every line stays


def enable_cache(function: Compiled, name: str, *, needs_numba: bool = True) -> None:
    """Let numba keep a function between runs, if it can. While it compiles the function, a person
    who waits is told that it compiles `name`. A function that needs nothing of numba when it runs,
    because it creates no arrays, is loaded sooner."""
    try:
        function.enable_caching()
    except RuntimeError:            # neither beside the source nor in the user's cache
        return
    cache = function._cache
    cache._cache_file = files = _Files(cache, function.__wrapped__.__module__)
    running: list[ExitStack] = []       # compilations that have begun: announced and locked
    load = cache.load_overload if needs_numba else partial(_load_overload, cache)
    save = cache.save_overload

    def load_or_say(*arguments: object) -> object:
        found = load(*arguments)
        if found is None:           # numba compiles next, and saves then
            work = ExitStack()
            _say(work, name)
            if not running:         # else the lock is ours already
                with suppress(OSError):     # where nothing can be kept
                    work.enter_context(lock_file(files.lock, seconds=PATIENCE))
                    found = load(*arguments)
            if found is None:
                running.append(work)
            else:
                work.close()
        return found

    def save_if_possible(*arguments: object) -> None:
        reason: Exception | None = None
        try:
            save(*arguments)
        except (MicrotronError, OSError) as error:
            reason = error
        finally:
            running.pop().close()
        if reason:
            print(f"microtron: what was compiled cannot be kept: {reason}; name another folder "
                  "with NUMBA_CACHE_DIR", file=sys.stderr)
    cache.load_overload, cache.save_overload = load_or_say, save_if_possible


class _Files:
    """What numba calls an IndexDataCacheFile: an index of signatures, and code for each."""

    def __init__(self, cache: Compiled, module: str):
        import numba

        impl = cache._impl
        self._folder, self._base = Path(cache.cache_path), impl.filename_base
        # Numba looks at the function's own source alone, and not at those that it calls.
        ours = source_digest(module) if module.startswith(f"{PACKAGE}.") else ""
        self._version = f"numba {numba.__version__} {impl.locator.get_source_stamp()} {ours}"

    @property
    def lock(self) -> Path:
        return self._path("lock")

    def flush(self) -> None:
        self._write("nbi", {})

    def save(self, key: object, data: object) -> None:
        index = self._index()
        if key not in index:
            index[key] = f"{len(index) + 1}.nbc"
            self._write("nbi", index)
        self._write(index[key], (key, data))

    def load(self, key: object) -> object:
        name = self._index().get(key)
        owner, data = (name and self._read(name)) or (None, None)
        return data if owner == key else None

    def _index(self) -> dict[object, str]:
        return self._read("nbi") or {}

    def _read(self, name: str) -> Compiled:
        content = read_entry(self._path(name), self._key(name))
        return None if content is None else pickle.loads(content)

    def _write(self, name: str, what: object) -> None:
        serialize: Compiled = import_module("numba.core.serialize")   # pickle cannot do functions
        write_entry(self._path(name), self._key(name), serialize.dumps(what))

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._base}.{name}"

    def _key(self, name: str) -> str:
        return f"{self._version} {self._base}.{name}"


def _load_overload(cache: Compiled, *arguments: object) -> object:
    """What the cache has, without all that numba prepares to compile or to manage memory, which
    takes a third of a second."""
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(*arguments)
    return None


def _say(work: ExitStack, name: str) -> None:
    live = sys.stderr is not None and sys.stderr.isatty()
    if live or name not in _said:
        _said.add(name)
        work.enter_context(announce(f"compiling the {name}, once: this takes some seconds"))
