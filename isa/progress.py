"""Says on standard error what takes long: a live line on a terminal, elsewhere a plain one."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TextIO

PATIENCE = 2.0              # seconds before somebody wants to know what is being done
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


def noted(what: str) -> None:
    """Say what somebody should know about what is being done, in a line that stays."""
    stream = sys.stderr
    if stream is not None:
        _say(stream, f"{ERASE if stream.isatty() else ''}microtron: {what}\n")


@contextmanager
def watched(work: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal, and nowhere else, what is being done, if it takes long. Gives a function
    that is told what comes next."""
    stream, doing, done = sys.stderr, deque([work], maxlen=1), Event()
    if stream is None or not stream.isatty():
        yield doing.append
        return
    thread = Thread(target=_live_later, args=(stream, doing, done), daemon=True)
    thread.start()
    try:
        yield doing.append
    finally:
        done.set()
        thread.join()


def _live_later(stream: TextIO, doing: deque[str], done: Event) -> None:
    start = time.monotonic()
    wait, said = PATIENCE, False
    while not done.wait(wait):
        _say(stream, f"{ERASE}microtron: {doing[-1]} ({time.monotonic() - start:.0f} s)")
        wait, said = REFRESH, True
    if said:
        _say(stream, ERASE)


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
