"""A shorter switch interval for Python's threads while one of them calls LLVM.

A thread that returns from LLVM waits for the GIL, which another thread holds for up to 5 ms. A
module takes dozens of such calls, most of them short: while another thread computes in Python, LLVM
would be idle most of the time.
"""

from __future__ import annotations

import sys
from threading import Lock
from types import TracebackType

INTERVAL = 1e-4         # seconds


class ShortSwitchInterval:
    """A context that any number of threads may enter. The last to leave restores the interval."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(INTERVAL, self._usual))
            self._inside += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._usual)


short_switch_interval = ShortSwitchInterval()
