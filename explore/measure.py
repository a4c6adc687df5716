"""Measures points exactly, in several processes, each of which adds what it measured at once.

`measure_schedules` is the one place that asks the compiler and the simulator.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from ..base.errors import ExecutionError
from ..compiler.errors import CompileError
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.kernel import build_nest, emit_kernel
from ..isa.program_key import program_digest
from ..sim.parallel import worker_pool
from ..sim.report import Report
from ..sim.simulate import Ready
from .points import LAYER, Json, LayerPoint, point_key
from .records import Record, Records, current_sources

AHEAD = 3                   # groups for each process that wait or run
LIMIT = 200_000_000         # cycles after which a point counts as one that cannot be measured
DESCRIBED = ("name", "device", "config_", "memory_")       # columns that are in the question

Group = Sequence[LayerPoint]            # of one layer on one configuration


@dataclass(frozen=True)
class Progress:
    """How far a measurement has come."""

    done: int               # points, known ones included
    measured: int           # of these, now
    seconds: float

    def __str__(self) -> str:
        rate = self.measured / self.seconds if self.seconds else 0.0
        return f"{self.done} points, {self.measured} measured now, {rate:.1f} a second"


def measure_schedules(points: Group) -> Iterator[tuple[LayerPoint, Json]]:
    """The points of one layer on one configuration, each with what came out: exact cycles and
    counters, or why there are none. Points that differ in the memory alone share a program."""
    for _, alike in groupby(points, key=lambda point: point.schedule):
        yield from _measure_memories(list(alike))


def _measure_memories(points: Group) -> Iterator[tuple[LayerPoint, Json]]:
    first = points[0]
    form, template = first.form, operator_of(first.layer).template
    try:
        # As `compile_op` does, but without its cache: nobody asks for these programs again.
        program = emit_kernel(form, build_nest(template, form, first.schedule.knobs))
    except CompileError as error:               # too many instructions, or no room after all
        yield from ((point, {"error": str(error)}) for point in points)
        return
    ready, digest = Ready(program, first.config), program_digest(program)
    for point in points:
        try:
            report = ready.simulate(point.memory, LIMIT)
        except ExecutionError as error:
            yield point, {"error": str(error)}
        else:
            yield point, {**outcome(report), "program": digest}


def outcome(report: Report) -> dict[str, object]:
    """The numbers of a report that are no part of the question."""
    return {name: value for name, value in report.to_row().items()
            if not name.startswith(DESCRIBED)}


def measure_group(path: Path, points: Group) -> int:
    """Measure what is not known yet of a group, and add each point as soon as it is measured. How
    many were unknown."""
    count = 0
    with Records(path) as records:
        known = records.keys_among(LAYER, [point_key(point.to_json()) for point in points])
        unknown = [point for point in points if point_key(point.to_json()) not in known]
        for point, measured in measure_schedules(unknown):
            records.add(Record(point.to_json(), current_sources(LAYER), measured))
            count += 1
    return count


def measure_all(path: Path, groups: Iterable[Group], *, processes: int | None = None,
                seconds: float | None = None,
                tell: Callable[[Progress], None] = lambda progress: None) -> Progress:
    """Measure groups of points into a store, until all are done or the time is up."""
    begin = time.monotonic()
    workers = processes or len(os.sched_getaffinity(0))
    done = measured = 0
    with closing(_in_processes(path, groups, workers) if workers > 1 else
                 _here(path, groups)) as results:
        for group, count in results:
            done, measured = done + len(group), measured + count
            tell(Progress(done, measured, time.monotonic() - begin))
            if seconds is not None and time.monotonic() - begin >= seconds:
                break
    return Progress(done, measured, time.monotonic() - begin)


def _here(path: Path, groups: Iterable[Group]) -> Generator[tuple[Group, int]]:
    yield from ((group, measure_group(path, group)) for group in groups)


def _in_processes(path: Path, groups: Iterable[Group],
                  workers: int) -> Generator[tuple[Group, int]]:
    """The groups in the order in which they get done. The first one is measured here: what is
    wrong with the store is said here, and code that is compiled at its first use is compiled once,
    not by every process."""
    rest = iter(groups)
    yield from _here(path, islice(rest, 1))
    waiting: dict[Future[int], Group] = {}
    with worker_pool(workers) as pool:
        for group in rest:
            waiting[pool.submit(measure_group, path, group)] = group
            if len(waiting) >= AHEAD * workers:
                yield from _take_finished(waiting)
        while waiting:
            yield from _take_finished(waiting)


def _take_finished(waiting: dict[Future[int], Group]) -> Iterator[tuple[Group, int]]:
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        yield waiting.pop(future), future.result()

