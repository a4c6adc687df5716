"""Tools in processes of their own. They end when we do, with everything that they started.

A tool leads a process group: Verilator starts make, which starts compilers, and a signal to the
group reaches them all. Ctrl-C and SIGTERM reach only this process, which passes them on.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from .errors import MicrotronError

STACK = 1 << 30                     # bytes, of a tool: none is taken before it is needed
STARTING = threading.Lock()          # limits are those of all threads
GROUPS: set[int] = set()            # process groups of the tools that run now
LIMITED = 'ulimit -S -t "$0" && exec "$@"'      # the system ends what takes longer
ENDING = (signal.SIGTERM, signal.SIGHUP)    # what would end us without a word, but for Ctrl-C


class Signalled(SystemExit):
    """A signal asks the process to end."""


class OverTimeError(MicrotronError):
    """A tool that takes more processor time than it may."""


def run_tool(command: Sequence[str], *, folder: Path | None = None, text: str = "",
             separate: bool = False, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end with `text` as its input. What it says comes as one text, or
    `separate` as what it prints and what it complains about; with a `log`, that file has it while
    the tool still runs."""
    process = None
    with orderly_end(), ExitStack() as files:
        output = subprocess.PIPE if log is None else files.enter_context(log.open("wb"))
        try:
            with _defer_signals(), _deep_stack():
                process = subprocess.Popen(
                    command, cwd=folder, text=True, errors="replace", process_group=0,
                    stdin=subprocess.PIPE, stdout=output,
                    stderr=subprocess.PIPE if separate else subprocess.STDOUT)
                GROUPS.add(process.pid)
            said, complained = process.communicate(text)
        finally:
            if process is not None:
                _end(process)
    if log is not None:
        said = log.read_text(errors="replace")
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def run_tool_for(seconds: int | None, command: Sequence[str], *, folder: Path,
                 doing: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a tool for no more than so many seconds of processor time, which a busy machine does not
    stretch. How it ended, and the time that it took; OverTimeError says `doing` takes more."""
    limited = () if seconds is None else ("sh", "-c", LIMITED, str(seconds))
    before = seconds_of_children()
    done = run_tool([*limited, *command], folder=folder, separate=True)
    spent = seconds_of_children() - before
    if seconds is not None and (done.returncode == -signal.SIGXCPU or (     # or of its own child
            done.returncode and spent >= seconds)):
        raise OverTimeError(f"{doing} takes more than {seconds:,} s of processor time")
    return done, spent


def seconds_of_children() -> float:
    """Processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _deep_stack() -> Iterator[None]:
    """What is started gets a large stack: tools recurse as deep as a design is large."""
    with STARTING:
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        deep = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
        if soft != resource.RLIM_INFINITY and soft < deep:
            resource.setrlimit(resource.RLIMIT_STACK, (deep, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def end_all_processes() -> None:
    """Kill everything that was started and still runs: we are about to end."""
    for group in tuple(GROUPS):
        _kill_group(group)
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children
        for child in active_children():
            child.kill()


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let signals that would end the process at once raise Signalled instead, so that whoever
    has begun something can undo it. Python takes handlers from the main thread alone; whatever
    handler somebody else has set up stays."""
    changed = []
    if threading.current_thread() is threading.main_thread():
        changed = [each for each in ENDING if signal.getsignal(each) == signal.SIG_DFL]
    for each in changed:
        signal.signal(each, _exit_by)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Let signals wait: an exception while a process is being started would lose its number."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {each: handler for each in (signal.SIGINT, *ENDING)
                if callable(handler := signal.getsignal(each))}
    for each in handlers:
        signal.signal(each, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    for number in came:
        handlers[signal.Signals(number)](number, None)


def _exit_by(number: int, frame: FrameType | None) -> None:
    raise Signalled(128 + number)       # what a shell says of a process that a signal ended


def _end(process: subprocess.Popen[str]) -> None:
    """Make sure that a process has ended with all of its group."""
    if process.returncode is None:
        _kill_group(process.pid)
    with process:                       # closes its pipes and waits
        GROUPS.discard(process.pid)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
