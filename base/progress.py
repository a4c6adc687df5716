"""Says on standard error what takes long: a live line on a terminal, elsewhere plain lines every
few seconds."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TextIO

from .checked_values import printable

PATIENCE = 2.0              # seconds before somebody wants to know what is being done
REFRESH = 0.5               # seconds from one state of a live line to the next
INTERVAL = 5.0              # seconds from one plain line to the next
ERASE = "\r\x1b[K"          # back to the beginning of the line, and all of it gone

_reported: list[deque[str]] = []     # what is being done, where somebody tells already: outermost


@contextmanager
def announce(work: str) -> Iterator[None]:
    """Say what is being done while it is being done."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        _say(stream, f"microtron: {printable(work)}\n")
        with _report_to_outer(work):
            yield
        return
    with _reporter(stream, work, 0.0):
        yield


def print_note(what: str) -> None:
    """Say what somebody should know about what is being done, in a line that stays."""
    stream = sys.stderr
    if stream is not None:
        _say(stream, f"{ERASE if stream.isatty() else ''}microtron: {printable(what)}\n")


@contextmanager
def report_progress(work: str) -> Iterator[Callable[[str], None]]:
    """Say what is being done, if it takes long. Gives a function that is told what comes next.
    Inside another one, only the outer one's line changes."""
    stream = sys.stderr
    if stream is None:
        yield _discard
        return
    with _reporter(stream, work, PATIENCE) as say:
        yield say


@contextmanager
def _report_to_outer(work: str) -> Iterator[None]:
    """Let whoever tells already tell this, if there is somebody."""
    if not _reported:
        yield
        return
    doing = _reported[-1]
    before = doing[-1]
    doing.append(work)
    try:
        yield
    finally:
        doing.append(before)


@contextmanager
def _reporter(stream: TextIO, work: str, patience: float) -> Iterator[Callable[[str], None]]:
    if _reported:
        with _report_to_outer(work):
            yield _reported[-1].append
        return
    doing, done = deque([work], maxlen=1), Event()
    tell = _live if stream.isatty() else _print_lines
    thread = Thread(target=tell, args=(stream, doing, done, patience), daemon=True)
    _reported.append(doing)
    thread.start()
    try:
        yield doing.append
    finally:
        _reported.remove(doing)
        done.set()
        thread.join()


def _live(stream: TextIO, doing: deque[str], done: Event, patience: float) -> None:
    """One line of a terminal, which goes away."""
    start, wait, said = time.monotonic(), patience, False
    while not done.wait(wait):
        _say(stream, f"{ERASE}microtron: {_state(doing, start)}")
        wait, said = REFRESH, True
    if said:
        _say(stream, ERASE)


def _print_lines(stream: TextIO, doing: deque[str], done: Event, patience: float) -> None:
    """Lines of a file, which stay."""
    start, wait = time.monotonic(), patience
    while not done.wait(wait):
        _say(stream, f"microtron: {_state(doing, start)}\n")
        wait = INTERVAL


def _state(doing: deque[str], start: float) -> str:
    return f"{printable(doing[-1])} ({time.monotonic() - start:.0f} s)"


def _discard(doing: str) -> None:
    """There is nobody to tell."""


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        with suppress(OSError, ValueError):     # whoever cannot be told is not told
            stream.write(text)
            stream.flush()
