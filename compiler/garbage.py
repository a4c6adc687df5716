"""Python's search for garbage in cycles, less often while a compiler builds very many objects.

Few of them are garbage before it is done. At Python's own rate, each search finds next to nothing
and all of them together take a tenth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

RARELY = 500_000            # new objects until the youngest are searched; Python's own: 700 to 2000

_lock = Lock()
_before: list[tuple[int, int, int]] = []        # of the first that is inside
_inside = 0


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Search less often until the last of those who ask for it, in whatever thread, is done."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1:
            _before[:] = [gc.get_threshold()]
            first, *others = _before[0]
            if first:                           # otherwise somebody has turned it off
                gc.set_threshold(max(first, RARELY), *others)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                gc.set_threshold(*_before.pop())
