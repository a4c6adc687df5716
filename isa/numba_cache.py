"""numba's cache: compiling says so, and a cache that cannot be written is no reason to stop."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias

from .progress import announced

Cached: TypeAlias = Any     # of numba, which has no types: a function with a cache

_said: set[str] = set()     # what has been announced where every line stays


def enable_cache(function: Cached, name: str, *, needs_numba: bool = True) -> None:
    """Let numba keep a function between runs, if it can. While it compiles the function, a person
    who waits is told that it compiles `name`. A function that needs nothing of numba when it runs,
    because it creates no arrays, is loaded sooner."""
    try:
        function.enable_caching()
    except RuntimeError:            # neither beside the source nor in the user's cache
        return
    cache, work = function._cache, ExitStack()
    load = cache.load_overload if needs_numba else partial(_loaded, cache)
    save = cache.save_overload

    def load_or_say(*arguments: Any) -> Any:
        found = load(*arguments)
        if found is None:           # numba compiles next, and saves then
            _say(work, name)
        return found

    def save_if_possible(*arguments: Any) -> None:
        work.close()
        try:
            save(*arguments)
        except OSError as error:
            print(f"microtron: what was compiled cannot be kept: {cache.cache_path}: "
                  f"{error.strerror}; name another folder with NUMBA_CACHE_DIR", file=sys.stderr)
    cache.load_overload, cache.save_overload = load_or_say, save_if_possible


def _loaded(cache: Cached, *arguments: Any) -> Any:
    """What the cache has, without all that numba prepares to compile or to manage memory, which
    takes a third of a second."""
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(*arguments)
    return None


def _say(work: ExitStack, name: str) -> None:
    live = sys.stderr is not None and sys.stderr.isatty()
    if live or name not in _said:
        _said.add(name)
        work.enter_context(announced(f"compiling the {name}, once: this takes some seconds"))
