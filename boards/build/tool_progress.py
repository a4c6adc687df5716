"""What nextpnr is doing now, from what it has said so far."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...base.progress import print_note, report_progress

INTERVAL = 2.0                  # seconds from one look at the log to the next
STAGES = {"Packing ": "packing cells", "Running Static placer": "placing",
          "Running simulated annealing placer": "refining the placement",
          "Running router2": "routing", "Routing..": "routing"}
ROUND = re.compile(r"iter=(\d+) wires=(\d+) overused=(\d+)")        # of router2
ARCS = re.compile(r"Routing (\d+) arcs")                            # of router1, and what is left
LEFT = re.compile(r"^Info: +\d+ \| +\d+ +\d+ \| +\d+ +\d+ \| +(\d+)")


class LogReader:
    """Follows a log line by line."""

    def __init__(self) -> None:
        self.state = ""
        self._arcs = 0

    def read(self, line: str) -> None:
        for begins, stage in STAGES.items():
            if line.startswith(f"Info: {begins}"):
                self.state = stage
        if found := ROUND.search(line):
            number, wires, overused = map(int, found.groups())
            self.state = (f"routing: {_percent(wires - overused, wires)} of wires without a "
                          f"conflict, round {number}")
        elif found := ARCS.search(line):
            self._arcs = int(found[1])
        elif self._arcs and (found := LEFT.match(line)):
            self.state = f"routing: {_percent(self._arcs - int(found[1]), self._arcs)} of wires"


def _percent(part: int, whole: int) -> str:
    """Rounded down: 100 % is for the end."""
    return f"{max(0, 100 * part // max(whole, 1))} %"


@contextmanager
def follow_log(log: Path, doing: str) -> Iterator[None]:
    """Tell what a tool is doing while it writes its log: in the live line of a terminal, elsewhere
    a line for each change."""
    done = threading.Event()
    if sys.stderr is not None and sys.stderr.isatty():
        with (report_progress(doing) as tell,
              _thread(log, done, lambda now: tell(f"{doing}: {now}"))):
            yield
    else:
        with _thread(log, done, lambda now: print_note(f"{doing}: {now}")):
            yield


@contextmanager
def _thread(log: Path, done: threading.Event, tell: Callable[[str], None]) -> Iterator[None]:
    thread = threading.Thread(target=_follow, args=(log, done, tell), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _follow(log: Path, done: threading.Event, tell: Callable[[str], None]) -> None:
    reader, place, rest, told = LogReader(), 0, "", ""
    while not done.wait(INTERVAL):
        try:
            with log.open("rb") as file:
                file.seek(place)
                data = file.read()
        except OSError:
            continue                # it has not begun
        place += len(data)
        *lines, rest = (rest + data.decode(errors="replace")).split("\n")
        for line in lines:
            reader.read(line)
        if reader.state != told:
            told = reader.state
            tell(told)
