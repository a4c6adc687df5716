"""Exact cycle counts as a function call: for cost models, tuning and sweeps. No data is touched."""

from __future__ import annotations

import itertools
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from ..isa.config import Config, tiny
from ..isa.errors import MicrotronError
from ..isa.instructions import Sync
from ..isa.program import Program
from ..isa.stream import encode
from ..isa.timing import MemoryTiming
from .arguments import at_least_one, check_memory, check_program, check_type, chosen_config
from .counts import count
from .cycle.stops import check_end
from .limit import checked_limit, cycle_limit
from .report import Report

DEVICE = "cycle"            # what the reports say: the device of that name takes the same cycles
AHEAD = 4                   # batches for each process that wait or run: none of them is ever idle
BATCH = 8                   # jobs that go to a process at once: small ones cost no more to send


@dataclass(frozen=True, kw_only=True)
class Job:
    """One simulation of many. Errors call it by its name, if it has one, and its number."""

    program: Program
    config: Config | str | None = None
    memory: MemoryTiming | None = None
    name: str = ""
    limit: int | None = None

    def __post_init__(self) -> None:
        check_program(self.program)
        chosen_config(self.config, self.program.config)
        check_memory(self.memory)
        check_type("name", self.name, str, "a string")
        checked_limit(self.limit)


def simulate(program: Program, config: Config | str | None = None,
             memory: MemoryTiming | None = None, *, limit: int | None = None) -> Report:
    """What a program costs: its cycles and counters, equal to the hardware's.

    config      another accelerator than the program's own, or the name of a preset; it must have
                the same tiles and scratchpads
    memory      the reference system's unless given
    limit       cycles after which to give up; 10,000,000,000 unless given

    Raises ExecutionError if the program does not reach its end. One that needs more cycles than
    the limit is refused before it begins, as far as its work tells.
    """
    from .cycle.run import run_cycles

    check_program(program)
    check_memory(memory)
    memory = memory or MemoryTiming()
    config = chosen_config(config, program.config)
    counts = count(program.code, config, {})
    most = cycle_limit(program, memory, limit, config, counts)
    run = run_cycles(program, config=config, timing=memory, limit=most)
    if run.stuck or run.fault:
        check_end(replace(program, config=config), run, most)
    return Report(device=DEVICE, config=config, memory=memory,
                  counts=replace(counts, most_tokens=run.most_tokens), cycles=run.cycles,
                  counters=run.counters, timeline=run.timeline)


def simulate_many(jobs: Iterable[Program | Job], processes: int | None = None,
                  progress: bool = True) -> list[Report]:
    """Simulate every job and report in the order of the jobs, without timelines.

    The result is the same for any number of processes; by default each processor has one, and
    with one the work is done here. Jobs may come from a generator: they are taken as needed. The
    first job that fails, in their order, ends everything with an error that names it. So does
    Ctrl-C: what has not begun never begins, and no process stays behind. Progress is shown only
    where a person sees it, on a terminal.
    """
    workers = _processors() if processes is None else at_least_one("processes", processes)
    total = len(jobs) if isinstance(jobs, Sized) else None
    batches = _batches(jobs, 1 if workers == 1 or (total or 0) < workers * BATCH else BATCH)
    done = (_simulated(batch) for batch in batches) if workers == 1 else _spread(batches, workers)
    reports: list[Report] = []
    with closing(done), _shown(progress, total) as advance:
        for some in done:
            reports += some
            advance(len(some))
    return reports


Batch = list[tuple[int, Job]]       # with their numbers


def _batches(jobs: Iterable[Program | Job], size: int) -> Iterator[Batch]:
    numbered = enumerate(map(_job, _iterated(jobs)))
    while batch := list(itertools.islice(numbered, size)):
        yield batch


def _iterated(jobs: Iterable[Program | Job]) -> Iterator[Program | Job]:
    check_type("jobs", jobs, Iterable, "a sequence of programs or Jobs")
    return iter(jobs)


def _job(each: Program | Job) -> Job:
    if isinstance(each, Program):
        return Job(program=each)
    check_type("a job", each, Job, "a Program or a Job")
    return each


def _simulated(batch: Batch) -> list[Report]:
    reports = []
    for number, job in batch:
        try:
            report = simulate(job.program, job.config, job.memory, limit=job.limit)
        except MicrotronError as error:
            raise type(error)(f"{_called(number, job)}: {error}") from None
        except Exception as error:
            error.add_note(f"while simulating {_called(number, job)}")
            raise
        reports.append(replace(report, timeline=None))
    return reports


def _called(number: int, job: Job) -> str:
    return f"job {number} ({job.name})" if job.name else f"job {number}"


def _spread(batches: Iterator[Batch], workers: int) -> Generator[list[Report]]:
    """The reports of each batch, in order, from processes of their own."""
    from multiprocessing import get_context

    _warm_up()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_watch_parent)
    waiting: deque[Future[list[Report]]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(_simulated, batch))
            if len(waiting) == workers * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise MicrotronError(
            "a process that simulated ended by itself: it had too little memory, or the script "
            "that calls simulate_many does so outside `if __name__ == \"__main__\":`") from None
    except BaseException:       # an error, Ctrl-C, or nobody wants the rest
        _stop(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _warm_up() -> None:
    """Let the simulator be compiled, if it must, once: the processes find it in the cache."""
    simulate(Program(tiny, encode([Sync()])))


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes at once. They only compute, so nothing is lost with them."""
    for process in list((pool._processes or {}).values()):      # terminate_workers() in 3.14
        process.terminate()


def _watch_parent() -> None:
    """Runs first in each process: Ctrl-C is the parent's to handle, and its end is ours."""
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)
    Thread(target=watch, daemon=True).start()


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _shown(wanted: bool, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if that is a terminal. Yields what advances it."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda jobs: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(*Progress.get_default_columns()[:-1], MofNCompleteColumn(),
                  TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=total)
        yield lambda jobs: bar.advance(task, jobs)
