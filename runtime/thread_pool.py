"""Threads that share the iterations of a kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from ..isa.errors import MicrotronError
from ..isa.values import integer, shown

VARIABLE = "MICROTRON_THREADS"
MOST = 256

Kernel = Callable[[Any, int, int], int]         # of a table and the iterations from … to before …


class Pool:
    """So many threads, the calling one included."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._others = ThreadPoolExecutor(max(1, threads - 1), "microtron kernel")

    def run(self, kernel: Kernel, table: Any, iterations: int) -> int:
        """Run a kernel: its status. Which thread takes which iterations changes nothing."""
        count = min(self.threads, iterations)
        ends = [iterations * (number + 1) // count for number in range(count)]
        waiting = [self._others.submit(kernel, table, first, last)
                   for first, last in pairwise(ends)]
        status = kernel(table, 0, ends[0])
        for each in waiting:
            status |= each.result()
        return status


@cache
def pool_of(threads: int) -> Pool:
    """A pool that is there already, if possible."""
    return Pool(threads)


def thread_count(threads: int | None = None) -> int:
    """How many threads to use: as told, as MICROTRON_THREADS says, or one for each processor."""
    given: Any = os.environ.get(VARIABLE) if threads is None else threads
    if given is None or given == "":
        return min(len(os.sched_getaffinity(0)), MOST)
    count = int(given) if isinstance(given, str) and given.isascii() and given.isdigit() else (
        integer(given))
    if count is None or not 1 <= count <= MOST:
        where = VARIABLE if threads is None else "threads"
        raise MicrotronError(f"{where} is {shown(given)}, but must be a whole number from 1 to "
                             f"{MOST}")
    return count
