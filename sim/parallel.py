"""Many cycle-exact simulations in parallel processes."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from ..base.errors import MicrotronError
from ..base.keywords import KeywordsChecked, check_keywords
from ..isa.config import Config, tiny
from ..isa.instructions import Sync
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..isa.stream import encode
from .arguments import check_memory, check_positive, check_program, check_type, resolve_config
from .limit import check_limit, least_cycles
from .report import Report
from .simulate import Ready, simulate

AHEAD = 4                   # batches queued or running per process, so that none is ever idle
BATCH = 8                   # jobs sent to a process at once: small ones cost little to send
ALONE = 0.1                 # seconds of processor time: less is not worth a process
LONG = 1_000_000            # cycles of a job that is worth one
REFRESH = 0.1               # seconds between updates of the progress bar


@dataclass(frozen=True, kw_only=True)
class Job(KeywordsChecked):
    """One simulation of `simulate_many`. Its name appears in its report and in errors."""

    program: Program
    config: Config | str | None = None
    memory: MemoryTiming | None = None
    name: str = ""
    limit: int | None = None

    def __post_init__(self) -> None:
        check_program(self.program)
        resolve_config(self.config, self.program.config)
        check_memory(self.memory)
        check_type("name", self.name, str, "a string")
        check_limit(self.limit)


@check_keywords
def simulate_many(jobs: Iterable[Program | Job], processes: int | None = None,
                  progress: bool = True) -> list[Report]:
    """Simulate many programs in parallel. Reports come in the order of the jobs, without timelines.

    jobs        programs or Jobs, also from a generator
    processes   one per processor unless given; 1 does everything in the caller
    progress    show a progress bar if standard error is a terminal

    The result does not depend on the number of processes. The first job that fails, in order, ends
    everything with an error that names it. Ctrl-C ends all processes.
    """
    workers = count_processors() if processes is None else check_positive("processes", processes)
    total = len(jobs) if isinstance(jobs, Sized) else None
    if total is not None:
        workers = min(workers, max(1, total))
    batches = _batches(jobs, _batch_size(total, workers))
    done = _here(batches) if workers == 1 else _distribute(batches, workers, total)
    reports: list[Report] = []
    with closing(done), _show_progress(progress, total) as advance:
        for some in done:
            reports += some
            advance(len(some))
    return reports


Batch = list[tuple[int, Job]]       # with their numbers


def _batch_size(total: int | None, workers: int) -> int:
    """Jobs per batch: few enough for every process to get at least two batches."""
    if workers == 1:
        return 1
    return BATCH if total is None else max(1, min(BATCH, total // (2 * workers)))


def _batches(jobs: Iterable[Program | Job], size: int) -> Iterator[Batch]:
    numbered = enumerate(map(_job, _iterate_jobs(jobs)))
    while batch := list(itertools.islice(numbered, size)):
        yield batch


def _iterate_jobs(jobs: Iterable[Program | Job]) -> Iterator[Program | Job]:
    check_type("jobs", jobs, Iterable, "a sequence of programs or Jobs")
    return iter(jobs)


def _job(each: Program | Job) -> Job:
    if isinstance(each, Program):
        return Job(program=each)
    check_type("a job", each, Job, "a Program or a Job")
    return each


class Simulator:
    """Simulates batches. A program that comes several times in a row is prepared once."""

    def __init__(self) -> None:
        self._ready: Ready | None = None

    def __call__(self, batch: Batch) -> list[Report]:
        return [self._simulate(*each) for each in batch]

    def _simulate(self, number: int, job: Job) -> Report:
        try:
            report = self._prepare(job).simulate(job.memory, job.limit)
        except MicrotronError as error:
            raise type(error)(f"{_name_job(number, job)}: {error}") from None
        except Exception as error:
            error.add_note(f"while simulating {_name_job(number, job)}")
            raise
        return replace(report, name=job.name, timeline=None)

    def is_long(self, numbered: tuple[int, Job]) -> bool:
        """Whether a job is certain to take long."""
        job = numbered[1]
        ready = self._prepare(job)
        return least_cycles(job.program, job.memory or MemoryTiming(), ready.counts,
                            ready.config) > LONG

    def _prepare(self, job: Job) -> Ready:
        config, last = resolve_config(job.config, job.program.config), self._ready
        if last is None or last.program is not job.program or last.config != config:
            self._ready = last = Ready(job.program, config)
        return last


def _name_job(number: int, job: Job) -> str:
    return f"job {number} ({job.name})" if job.name else f"job {number}"


def _here(batches: Iterator[Batch]) -> Generator[list[Report]]:
    yield from map(Simulator(), batches)


def _distribute(batches: Iterator[Batch], workers: int,
                total: int | None) -> Generator[list[Report]]:
    """The reports of each batch, in order, from other processes. The first batches are simulated in
    this process as long as that is fast: a few small jobs are done before another process would
    have started."""
    begin, done, alone = time.process_time(), 0, Simulator()
    for batch in batches:
        spent = time.process_time() - begin
        left = spent * (total / done - 1) if total and done else spent
        if min(spent, left) > ALONE or any(map(alone.is_long, batch)):
            yield from _run_in_processes(itertools.chain([batch], batches), workers)
        else:
            yield alone(batch)
            done += len(batch)


def _run_in_processes(batches: Iterator[Batch], workers: int) -> Generator[list[Report]]:
    waiting: deque[Future[list[Report]]] = deque()
    with worker_pool(workers) as pool:
        for batch in batches:
            waiting.append(pool.submit(_simulator, batch))
            if len(waiting) == workers * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_simulator = Simulator()            # of a worker process


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes. They are forked, which is fast, if this one has no other threads, which
    a fork would cut off; otherwise they are spawned, which takes a second."""
    from multiprocessing import get_context

    simulate(Program(tiny, encode([Sync()])))       # compiles, if necessary, before the fork
    copies = sys.platform == "linux" and threading.active_count() == 1
    pool = ProcessPoolExecutor(workers, mp_context=get_context("fork" if copies else "spawn"),
                               initializer=_watch_parent)
    try:
        with warnings.catch_warnings():             # NumPy's idle threads are harmless
            warnings.simplefilter("ignore", DeprecationWarning)
            pool.submit(int)                        # starts all of them now
        yield pool
    except BrokenProcessPool:
        raise MicrotronError(
            "a process that simulated ended by itself: it had too little memory, or the script "
            "that calls simulate_many does so outside `if __name__ == \"__main__\":`") from None
    except BaseException:       # an error, Ctrl-C, or the caller stopped iterating
        _stop(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes at once. They only compute, so nothing is lost."""
    for process in list((pool._processes or {}).values()):      # terminate_workers() in 3.14
        process.terminate()


def _watch_parent() -> None:
    """Runs first in each process: leave Ctrl-C to the parent, and exit when it does."""
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)       # a forked process has the parent's handler
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()


def count_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _show_progress(wanted: bool, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if that is a terminal. Yields the function that advances
    it."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda jobs: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(*Progress.get_default_columns()[:-1], MofNCompleteColumn(),
                  TimeRemainingColumn(), console=Console(stderr=True), transient=True,
                  auto_refresh=False) as bar:       # it would need a thread
        task, shown = bar.add_task("simulating", total=total), 0.0

        def advance(jobs: int) -> None:
            nonlocal shown
            bar.advance(task, jobs)
            if time.monotonic() - shown > REFRESH:
                shown = time.monotonic()
                bar.refresh()
        yield advance
