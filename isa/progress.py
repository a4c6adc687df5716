"""Says on standard error what takes long: a live line on a terminal, elsewhere a plain one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TextIO

REFRESH = 0.5               # seconds from one state of a live line to the next
ERASE = "\r\x1b[K"          # back to the beginning of the line, and all of it gone


@contextmanager
def announced(work: str) -> Iterator[None]:
    """Say what is being done while it is being done."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        _say(stream, f"microtron: {work}\n")
        yield
        return
    done = Event()
    thread = Thread(target=_live, args=(stream, work, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _live(stream: TextIO, work: str, done: Event) -> None:
    start = time.monotonic()
    while not done.is_set():
        _say(stream, f"{ERASE}microtron: {work} ({time.monotonic() - start:.0f} s)")
        done.wait(REFRESH)
    _say(stream, ERASE)


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        with suppress(OSError):         # whoever cannot be told is not told
            stream.write(text)
            stream.flush()
