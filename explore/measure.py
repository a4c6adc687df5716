"""Measures points exactly, here or on the workers of a cluster, and adds them to a store at once.

`measure_schedules` is the one place that asks the compiler, the simulator and devices. Here every
point is a transaction of its own. Workers make the rows of a store, and all of a task are one
transaction, so that little is left to do for the process that writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path

from ..base.checked_values import quote
from ..base.errors import ExecutionError, MicrotronError
from ..compiler.errors import CompileError
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.kernel import build_nest, emit_kernel
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..isa.program_key import program_digest
from ..runtime.devices.device import BOARD, BOARD_FORM, open_device
from ..sim.report import Report
from ..sim.simulate import Ready
from .distributed.pool import Pool, SerialPool
from .points import Json, LayerPoint, point_key
from .records import Record, Records, StoredRow, current_sources
from .time_left import time_left

TASK = 16                   # points of a task for a cluster: a fraction of a second
DEVICE = "MICROTRON_DEVICE" # the variable with the address of a worker's board
TIMED = ("cycle", "rtl")    # devices that say how many cycles a run took, beside boards
LIMIT = 200_000_000         # cycles after which a point counts as one that cannot be measured
DESCRIBED = ("name", "device", "config_", "memory_")       # columns that are in the question

Group = Sequence[LayerPoint]            # those of one layer on one configuration together


@dataclass(frozen=True)
class Progress:
    """How far a measurement has come."""

    done: int               # points, known ones included
    measured: int           # of these, now
    seconds: float

    def __str__(self) -> str:
        rate = self.measured / self.seconds if self.seconds else 0.0
        return f"{self.done} points, {self.measured} measured now, {rate:.1f} a second"

    def left(self, points: int | None) -> str:
        """How long it takes until there are so many points."""
        known = self.done - self.measured
        return time_left(self.measured, points and points - known, self.seconds)


def measure_schedules(points: Group) -> Iterator[tuple[LayerPoint, Json]]:
    """Points, each with what came out: exact cycles and counters, or why there are none. Those
    that follow one another and differ in the memory alone share a program."""
    for _, alike in groupby(points, key=lambda each: (each.schedule, each.layer, each.config)):
        yield from _measure_memories(list(alike))


def record_points(points: Group) -> Iterator[list[StoredRow]]:
    """The row of each point as soon as it is measured."""
    for point, found in measure_schedules(points):
        yield [Record(point.to_json(), current_sources(point.kind), found).to_row()]


def record_task(points: Group) -> Iterator[list[StoredRow]]:
    """A task of a cluster: all rows together."""
    yield [row for rows in record_points(points) for row in rows]


def _measure_memories(points: Group) -> Iterator[tuple[LayerPoint, Json]]:
    first = points[0]
    form, template = first.form, operator_of(first.layer).template
    try:
        # As `compile_op` does, but without its cache: nobody asks for these programs again.
        program = emit_kernel(form, build_nest(template, form, first.schedule.knobs))
    except CompileError as error:               # too many instructions, or no room after all
        yield from ((point, {"error": str(error)}) for point in points)
        return
    digest = program_digest(program)
    if first.device:
        yield from ((point, {**outcome(_run_on_device(program, point)), "program": digest})
                    for point in points)
        return
    ready = Ready(program, first.config)
    for point in points:
        try:
            report = ready.simulate(point.memory, LIMIT)
        except ExecutionError as error:
            yield point, {"error": str(error)}
        else:
            yield point, {**outcome(report), "program": digest}


def check_device(given: str) -> str:
    """The name of a device, without the address of a board: that is for the process that runs it,
    in an environment variable."""
    name, _, address = given.partition("@")
    if name and name not in TIMED and not name.startswith(BOARD):
        raise MicrotronError(f"device is {quote(given)}, but must be one that measures cycles: "
                             f"{', '.join(TIMED)} or {BOARD_FORM}")
    if address:
        os.environ[DEVICE] = given
    return name


def _run_on_device(program: Program, point: LayerPoint) -> Report:
    """The report of a device. Cycles do not depend on data, so inputs are what the image holds.
    What goes wrong says nothing about the point, and is not recorded."""
    name, memory = point.device, None if point.device.startswith(BOARD) else point.memory
    if name.startswith(BOARD):
        address = os.environ.get(DEVICE, "")
        if address.split("@")[0] != name:
            raise MicrotronError(f"there is no {name} here: {DEVICE} is {address!r}, but must be "
                                 f"{name}@ADDRESS")
        name = address
        if point.memory != MemoryTiming():
            raise MicrotronError(f"{point.device} has a memory of its own: leave out memories")
    device = open_device(name, point.config, memory=memory)
    device.load(program)
    return device.run()


def outcome(report: Report) -> dict[str, object]:
    """The numbers of a report that are no part of the question."""
    return {name: value for name, value in report.to_row().items()
            if not name.startswith(DESCRIBED)}


def measure_all(path: Path, groups: Iterable[Group], *, pool: Pool | None = None,
                seconds: float | None = None,
                tell: Callable[[Progress], None] = lambda progress: None) -> Progress:
    """Measure groups of points into a store, until all are done or the time is up. What is known
    is not measured again."""
    start = time.monotonic()
    workers = pool or SerialPool()
    done = measured = 0
    with Records(path) as records:
        def unknown() -> Iterator[list[LayerPoint]]:
            nonlocal done
            for group in groups:
                keys = {point_key(point.to_json()): point for point in group}
                known = records.keys_among(group[0].kind, keys)
                done += len(group) - len(keys) + len(known)
                yield [point for key, point in keys.items() if key not in known]
        tasks, run = (unknown(), record_points) if workers.size == 1 else (
            _divide(unknown()), record_task)
        with closing(workers.run(run, tasks)) as results:
            for rows in results:
                done, measured = done + len(rows), measured + records.add_rows(rows)
                tell(Progress(done, measured, time.monotonic() - start))
                if seconds is not None and time.monotonic() - start >= seconds:
                    break
    return Progress(done, measured, time.monotonic() - start)


def _divide(groups: Iterable[Group]) -> Iterator[list[LayerPoint]]:
    """The same points in groups of the size of a task."""
    points = chain.from_iterable(groups)
    while task := list(islice(points, TASK)):
        yield task
