"""Turns of inferences that must not overlap, in the order in which they asked."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    """A lock that is fair, and that a thread may take which is not the one that gives it back."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._is_busy = False

    def call_in_turn(self, begin: Callable[[], None]) -> None:
        """Have `begin` called when all before have ended; `end_turn` says when this one has."""
        with self._changed:
            if self._is_busy:
                self._waiting.append(begin)
                return
            self._is_busy = True
        begin()

    def end_turn(self) -> None:
        with self._changed:
            begin = self._waiting.popleft() if self._waiting else None
            self._is_busy = begin is not None
            self._changed.notify_all()
        if begin is not None:
            begin()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn, here."""
        mine = threading.Event()
        self.call_in_turn(mine.set)
        mine.wait()
        try:
            yield
        finally:
            self.end_turn()

    def wait(self) -> None:
        """Until nobody has a turn or wants one."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_busy)
