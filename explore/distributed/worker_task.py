"""What a worker of a cluster runs: one task at a time, and only for a caller with the same
sources."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from functools import cache
from threading import Lock
from typing import TypeVar

from ...base.errors import MicrotronError
from ...base.source_digest import source_digest

T = TypeVar("T")
R = TypeVar("R")
_turn = Lock()              # one task at a time, also where a worker has several threads


def run_task(function: Callable[[T], Iterable[R]], task: T, sources: str | None) -> list[R]:
    """All results of a task. `sources` are those of the caller, if they may be other ones."""
    with _turn:
        if sources is not None and sources != task_sources():
            raise MicrotronError(f"the worker on {platform.node()} has another Microtron (sources "
                                 f"{task_sources()[:12]}, here {sources[:12]}): install the same "
                                 f"version on all workers")
        return list(function(task))


@cache
def task_sources() -> str:
    """A digest of all sources that decide the results of tasks."""
    return source_digest("microtron.explore.dataset", "microtron.explore.measure",
                         "microtron.explore.tune", "microtron.explore.codesign.workload")
