"""A command that is told to stop does so within two seconds, whatever it is doing.

Python notices Ctrl-C between two of its own instructions, as an exception, and everybody tidies
up. But a library may compute for long without returning to Python. So a thread waits for the
signal too, gives the exception some time, and then ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..base.processes import ENDING, end_all_processes, orderly_end

GRACE = 1.0                 # seconds
DISMISSED = 0               # to the thread, where signals have other numbers


@contextmanager
def stopping_in_time() -> Iterator[None]:
    """While this is open, Ctrl-C, SIGTERM and SIGHUP end the process in time."""
    if threading.current_thread() is not threading.main_thread():
        yield                           # signals go to the main thread, whoever that belongs to
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reading,), daemon=True)
    watcher.start()
    try:
        with orderly_end():
            yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writing, bytes([DISMISSED]))
        watcher.join()
        os.close(reading)
        os.close(writing)


def _watch(reading: int) -> None:
    """Each signal that arrives is a byte, its number."""
    while (number := os.read(reading, 1)[0]) != DISMISSED:
        if number in (signal.SIGINT, *ENDING):
            stops, _, _ = select.select([reading], [], [], GRACE)
            if stops and os.read(reading, 1)[0] == DISMISSED:
                return
            end_all_processes()         # time is up, or somebody has pressed Ctrl-C again
            os.write(2, b"microtron: interrupted\n")
            os._exit(128 + number)
