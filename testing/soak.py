"""The long comparison of hardware and twin: random cases for as long as asked, and resumed.

How far each configuration has come is kept in the cache, under a checksum of everything that is
compared: changed sources begin anew. Cases are numbered, so the number of those that were equal
says it all.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.cache import cache_folder, cache_key
from ..base.source_digest import source_digest
from ..isa.config import PRESETS, Config
from ..runtime.devices.rtl_build import generator, library
from .campaign import SMALL, check_case, long_case, random_config, valid_case, wrong_case
from .differences import explain, save_case

# Large arrays are slow, and small ones meet corners.
SHARES = {"tiny": 32, "micro": 2, "mini": 1, "compact": 1, "trim": 1, "batch": 20, "int4": 20,
          "small": 8, "slim": 1, "lean": 2, "base": 1, "wide": 1,
          "random 0": 3, "random 1": 3, "random 2": 2, "random 3": 2}
WRONG, LONG = 5, 10         # one program in so many is wrong, or its bus fails; or takes long
PART = 20                   # cases that are handed to a process at once
FIRST_SEED = 1 << 40        # apart from the seeds of the tests
FOLDER = "soak"             # of the cache
FROM_TERMINALS = (signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Part:
    """Some cases of a configuration, from a number on."""

    name: str
    first: int
    count: int


@dataclass(frozen=True)
class Result:
    """How a part ended: the cases that were equal from its first on, and then what was not."""

    part: Part
    equal: int
    difference: str = ""


class Progress:
    """Equal cases of each configuration so far, in a file."""

    def __init__(self, path: Path):
        self.path = path
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            content = {}
        self.equal: dict[str, int] = content if _is_progress(content) else {}

    @property
    def total(self) -> int:
        return sum(self.equal.values())

    def add(self, result: Result) -> None:
        assert self.equal.get(result.part.name, 0) == result.part.first
        self.equal[result.part.name] = result.part.first + result.equal
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(self.equal).encode())


def _is_progress(content: object) -> bool:
    return isinstance(content, dict) and set(content) <= set(SHARES) and all(
        type(each) is int and each >= 0 for each in content.values())


def config_of(name: str) -> Config:
    if name.startswith("random "):
        return random_config(int(name.removeprefix("random ")))
    return SMALL.get(name) or PRESETS[name]


def progress_file() -> Path:
    """Named after the configurations and all sources of both sides."""
    key = cache_key("soak", source_digest(__name__), generator(),
                    *(config_of(name).digest for name in SHARES))
    return cache_folder(FOLDER) / f"{key}.json"


def soak(programs: int, processes: int, tell: Callable[[str], None]) -> tuple[Progress, str]:
    """Compare until so many programs are equal in all. Returns also the first difference."""
    progress = Progress(progress_file())
    parts = list(remaining(progress, programs))
    if not parts:
        return progress, ""
    context = multiprocessing.get_context("spawn")
    for name in {part.name for part in parts}:
        tell(f"compiling {name}")
        library(config_of(name))        # here, so that processes do not wait for one another
    with _deaf_children():
        pool = context.Pool(processes)
    with pool:
        for number, result in enumerate(pool.imap(work, parts)):
            progress.add(result)
            if result.difference:
                pool.terminate()
                return progress, result.difference
            if number % 50 == 0 or number == len(parts) - 1:
                tell(f"{progress.total} programs equal")
    return progress, ""


def remaining(progress: Progress, programs: int) -> Iterator[Part]:
    """What is left of each configuration's share, taking turns."""
    ends = {name: -(-programs * share // sum(SHARES.values())) for name, share in SHARES.items()}
    places = {name: progress.equal.get(name, 0) for name in SHARES}
    while any(places[name] < ends[name] for name in SHARES):
        # Whoever is furthest behind, so that an interruption leaves all shares even.
        name = min(SHARES, key=lambda each: places[each] / ends[each])
        count = min(PART, ends[name] - places[name])
        yield Part(name, places[name], count)
        places[name] += count


def work(part: Part) -> Result:
    """Compare the cases of a part, up to the first difference."""
    config = config_of(part.name)
    for number in range(part.first, part.first + part.count):
        make = (wrong_case if number % WRONG == 0 else long_case if number % LONG == 1
                else valid_case)
        comparison = check_case(make(config, FIRST_SEED + number), right=make is valid_case)
        if comparison.differences:
            path = cache_folder(FOLDER) / f"{config.digest}-{number}.mt"
            save_case(comparison, path)
            return Result(part, number - part.first, explain(comparison, path))
    return Result(part, part.count)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes that are started meanwhile never hear what a terminal sends to all of them:
    the one that hands out the work ends the others. It hears of it itself when this is over."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINALS)
    try:
        resource_tracker.ensure_running()       # a process, too; unblocks some when it has started
        signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
