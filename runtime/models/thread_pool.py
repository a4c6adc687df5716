"""Threads that share the iterations of kernels."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from ctypes import CDLL, CFUNCTYPE, Structure, c_int32, c_int64, c_void_p, cast
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread

import numpy as np

from ...base.checked_values import integer, quote
from ...base.errors import MicrotronError
from ...compiler.cpu.code.sharing import LINE, POOL_WORDS, RUNNING, SLEEP, YIELD
from .kernel_code import Function

VARIABLE = "MICROTRON_THREADS"
MOST = 256
TURNS = 16          # in which a thread takes its iterations of a kernel, so that all end together

Run = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, c_int32, c_void_p)    # as of `running_steps`
Help = CFUNCTYPE(None, c_void_p)


class Step(Structure):
    """A kernel as `running_steps` reads it."""

    _fields_ = (("finder", c_void_p), ("places", c_void_p), ("body", c_void_p),
                ("iterations", c_int64), ("share", c_int64))


def share_of(iterations: int, threads: int) -> int:
    """How many iterations of a kernel a thread takes at a time; 0: there is nothing to share."""
    return max(1, iterations // (threads * TURNS)) if threads > 1 and iterations > 1 else 0


class Pool:
    """Helpers of whoever runs steps: one caller at a time, and others run theirs alone."""

    def __init__(self, threads: int, help_steps: Function) -> None:
        """Of so many threads, the calling one included. The function's code must stay in memory
        while helpers may be in it, which is as long as this pool lives."""
        self._code = help_steps
        memory = np.zeros(POOL_WORDS + LINE, np.int64)
        self._words = memory[-memory.ctypes.data // 8 % LINE:][:POOL_WORDS]
        system = CDLL(None)
        for place, function in ((YIELD, system.sched_yield), (SLEEP, system.usleep)):
            self._words[place] = cast(function, c_void_p).value or 0
        self._running, self._calls = Lock(), SimpleQueue[bool]()
        self._helpers = [Thread(target=self._help, args=(Help(help_steps.address),), daemon=True,
                                name="microtron kernel") for _ in range(threads - 1)]
        for each in self._helpers:
            each.start()
        atexit.register(self.close)

    def _help(self, help_steps: Callable[[int], object]) -> None:
        while self._calls.get():
            help_steps(self._words.ctypes.data)

    def run(self, run_steps: Callable[..., int], table: object, steps: object, first: int,
            last: int) -> int:
        """Run steps: 0, or the number of the one that failed, from 1 on. Which thread takes which
        iterations changes nothing."""
        if not self._running.acquire(blocking=False):
            return int(run_steps(table, steps, first, last, None))
        try:
            self._words[RUNNING] = 1            # before they are called, or they would go again
            for _ in range(len(self._helpers) - self._calls.qsize()):
                self._calls.put(True)
            return int(run_steps(table, steps, first, last, self._words.ctypes.data))
        finally:
            self._running.release()

    def close(self) -> None:
        """Let all helpers end: machine code must not be unloaded under them."""
        for _ in self._helpers:
            self._calls.put(False)
        for each in self._helpers:
            each.join()


@cache
def pool_of(threads: int, help_steps: Function) -> Pool:
    """A pool that is there already, if possible."""
    return Pool(threads, help_steps)


os.register_at_fork(after_in_child=pool_of.cache_clear)     # threads stay behind


def thread_count(threads: int | None = None) -> int:
    """How many threads to use: as told, as MICROTRON_THREADS says, or one for each processor."""
    given: object = os.environ.get(VARIABLE) if threads is None else threads
    if given is None or given == "":
        return min(len(os.sched_getaffinity(0)), MOST)
    count = int(given) if isinstance(given, str) and given.isascii() and given.isdigit() else (
        integer(given))
    if count is None or not 1 <= count <= MOST:
        where = VARIABLE if threads is None else "threads"
        raise MicrotronError(f"{where} is {quote(given)}, but must be a whole number from 1 to "
                             f"{MOST}")
    return count
