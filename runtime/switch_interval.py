"""Short turns for Python's threads, while one of them hands work to LLVM.

A thread that comes back from LLVM waits for the end of another's turn, which Python makes 5 ms. For
a module there are dozens of such calls, most of them short: while another thread computes in
Python, LLVM would mostly wait, and the processor that it could use with it.
"""

from __future__ import annotations

import sys
from threading import Lock
from types import TracebackType

TURN = 1e-4             # seconds


class ShortTurns:
    """A context that any number of threads may be in. Python is as it was when the last leaves."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(TURN, self._usual))
            self._inside += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._usual)


short_turns = ShortTurns()
