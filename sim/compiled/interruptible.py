"""Long-running compiled code that can be interrupted with Ctrl-C.

Python handles signals in its main thread, between its own instructions, and therefore not while
that thread runs compiled code. So such code runs in a thread of its own, without Python's lock,
while the caller waits. An exception in the caller sets a cell that the code checks every few
milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Stop:
    """The cell. Compiled code gets its address and calls `is_set` of `vectors`."""

    def __init__(self) -> None:
        self._cell = np.zeros(1, np.int64)
        self.address: int = self._cell.ctypes.data

    def set(self, value: bool) -> None:
        self._cell[0] = value


NEVER = Stop()              # for short calls: it is never set


def interruptible(function: Callable[[], T], stop: Stop) -> T:
    """Call a function that releases Python's lock and returns soon after `stop` is set."""
    results: list[T] = []
    worker = Thread(target=lambda: results.append(function()), daemon=True)
    try:
        worker.start()
        worker.join()
    except BaseException:
        stop.set(True)
        worker.join()
        stop.set(False)
        raise
    return results[0]
