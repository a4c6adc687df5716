"""Where tasks run: in this process, on a Dask cluster of this machine, or on one that exists.

A task is a function, which gives one result after another, and its argument. Results come back to
whoever asked, who alone writes to a store: workers need no common file system, a task whose worker
is lost is computed again by another, and a result that comes twice is one record.

Workers may have a resource tag such as `device=rtl` or `device=board:ulx3s`. Points that are
measured on a device go to workers with its tag, and to no others.
"""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from types import ModuleType
from typing import Protocol, TypeVar

from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ...base.progress import print_note
from ...compiler.compile import compile_op
from ...compiler.operators.dense.dense import Dense
from ...isa.config import tiny
from ...sim.simulate import simulate
from .worker_task import run_task, task_sources

AHEAD = 3                   # tasks for each worker that wait or run
RECOUNT = 2.0               # seconds after which workers are counted again
CONNECT = 30.0              # seconds to wait for a scheduler
MOST_WORKERS = 256          # of a local cluster
# Of Dask: nobody looks at profiles of workers, and every sample walks through a compiler's stack.
# Nor at how busy they are; nothing is kept on two of them; and we count them ourselves.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s",
         "distributed.admin.system-monitor.interval": "60s",
         "distributed.admin.system-monitor.gil.enabled": False,
         "distributed.scheduler.active-memory-manager.start": False,
         "distributed.client.scheduler-info-interval": "60s",
         "distributed.client.heartbeat": "60s"}
ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+")
T = TypeVar("T")
R = TypeVar("R")
Result = TypeVar("Result", covariant=True)
Function = Callable[[T], Iterable[R]]


class PoolError(MicrotronError):
    """A cluster that cannot be reached, or was lost. What was measured is in the store."""


class Future(Protocol[Result]):
    """What is used of Dask's."""

    def result(self) -> Sequence[Result]: ...


class Client(Protocol):
    """What is used of Dask's."""

    loop: object

    def submit(self, run: Callable[..., Sequence[R]], *arguments: object, pure: bool,
               resources: Mapping[str, int] | None) -> Future[R]: ...

    def cancel(self, futures: Sequence[Future[R]]) -> None: ...

    def run(self, function: Callable[[], None]) -> object:
        """By every worker."""

    def scheduler_info(self, n_workers: int) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
        ...


class Pool(Protocol):
    """Runs tasks."""

    @property
    def size(self) -> int:
        """How many tasks run at the same time; 1 is here, one after another."""

    def run(self, function: Function[T, R], tasks: Iterable[T]) -> Generator[R]:
        """The results of all tasks, in the order in which they get done. Tasks are asked for as
        they are needed."""


class SerialPool:
    """This process, without Dask."""

    size = 1

    def run(self, function: Function[T, R], tasks: Iterable[T]) -> Generator[R]:
        for task in tasks:
            yield from function(task)


class DaskPool:
    """Workers of a cluster: all, or those that have a tag."""

    def __init__(self, client: Client, *, tag: str | None, sources: str | None) -> None:
        self.client, self.tag, self.sources = client, tag, sources
        self._size, self._counted = 0, float("-inf")

    @property
    def size(self) -> int:
        """Never 1, which would be this process. Workers may come and go."""
        if time.monotonic() > self._counted + RECOUNT:
            self._size, self._counted = self.count_workers(), time.monotonic()
        return max(2, self._size)

    def count_workers(self) -> int:
        """Tasks that the cluster can run at the same time."""
        with self._explain_errors():
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(_count_tasks(each, self.tag) for each in workers)

    def run(self, function: Function[T, R], tasks: Iterable[T]) -> Generator[R]:
        from distributed import as_completed

        if not self.count_workers():
            print_note(f"no worker{f' has {self.tag}' if self.tag else ''} yet; waiting for one")
        rest = iter(tasks)
        waiting: set[Future[R]] = set()
        wanted = None if self.tag is None else {self.tag: 1}
        done = as_completed(loop=self.client.loop)

        def fill() -> None:
            for task in islice(rest, max(0, AHEAD * self.size - len(waiting))):
                with self._explain_errors():
                    future: Future[R] = self.client.submit(
                        run_task, function, task, self.sources, pure=False, resources=wanted)
                waiting.add(future)
                done.add(future)
        try:
            fill()
            for future in done:
                waiting.discard(future)
                fill()                          # first, so that no worker is idle
                yield from self._result(future)
        finally:
            with suppress(Exception):           # the scheduler may be gone
                self.client.cancel(list(waiting))

    def _result(self, future: Future[R]) -> Sequence[R]:
        from distributed import KilledWorker

        try:
            with self._explain_errors():
                return future.result()
        except KilledWorker as error:
            raise PoolError(f"a task ended {error.allowed_failures + 1} workers, one after "
                            f"another: does a layer need more memory than they have?") from None

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        from concurrent.futures import CancelledError

        try:
            yield
        except (CancelledError, OSError, TimeoutError) as error:
            raise PoolError(f"the scheduler of the cluster is gone ({quote(str(error))}): what was "
                            f"measured is in the store, and the same command goes on from it"
                            ) from None


def _count_tasks(worker: Mapping[str, object], tag: str | None) -> int:
    threads, resources = worker["nthreads"], worker["resources"]
    assert isinstance(threads, int), "as Dask describes workers"
    assert isinstance(resources, dict), "as Dask describes workers"
    return threads if tag is None else int(resources.get(tag, 0))


@contextmanager
def open_pool(workers: int = 1, scheduler: str | None = None,
              device: str = "") -> Iterator[Pool]:
    """This process for one worker, a local cluster for more, or the cluster of a scheduler, whose
    workers must have the tag of the device, if one is given."""
    if not 1 <= workers <= MOST_WORKERS:
        raise MicrotronError(f"workers is {workers}, but must be from 1 to {MOST_WORKERS}")
    if scheduler is None and workers == 1:
        yield SerialPool()
        return
    tag = f"device={device}" if device else None
    library = import_distributed()
    for name in ("distributed", "tornado", "asyncio"):      # what matters is an error of ours
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler is None:
        compile_code()
        with _start_cluster(library, workers, tag) as cluster, _quiet(library.Client)(
                cluster) as client:
            client.run(compile_code)            # all at once, not each before its first task
            yield DaskPool(client, tag=tag, sources=None)
        return
    if workers != 1:
        raise MicrotronError("workers are those of the scheduler: leave out --workers")
    with _connect(library, scheduler) as client:
        yield DaskPool(client, tag=tag, sources=task_sources())


def _start_cluster(library: ModuleType, workers: int,
                   tag: str | None) -> AbstractContextManager[object]:
    """A cluster of this machine. Ctrl-C is for us alone: its threads, and the processes that they
    start, inherit that it is blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return _quiet(library.LocalCluster)(
            n_workers=workers, threads_per_worker=1, memory_limit=0,
            silence_logs=logging.CRITICAL, resources={tag: 1} if tag else None,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"})      # any port that is free
    except (OSError, RuntimeError) as error:
        raise PoolError(f"a cluster of {workers} workers cannot be started: {quote(str(error))}"
                        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _quiet(make: Callable[..., AbstractContextManager[R]]
           ) -> Callable[..., AbstractContextManager[R]]:
    """What Dask makes, with settings for a cluster that nobody watches."""
    from dask import config

    def make_quietly(*arguments: object, **named: object) -> AbstractContextManager[R]:
        with config.set(QUIET):
            return make(*arguments, **named)
    return make_quietly


def compile_code() -> None:
    """Compile, or load, what is needed at first use: once, before every worker compiles it; and by
    every worker as it starts."""
    simulate(compile_op(Dense(rows=1, inputs=8, outputs=8), tiny).program)


def _connect(library: ModuleType, scheduler: str) -> AbstractContextManager[Client]:
    if not ADDRESS.fullmatch(scheduler):
        raise MicrotronError(f"scheduler is {quote(scheduler)}, but must be an address such as "
                             f"tcp://host:8786 or tls://host:8786")
    try:
        client: AbstractContextManager[Client] = library.Client(scheduler, timeout=CONNECT)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise PoolError(f"{scheduler}: there is no scheduler that answers: {quote(str(error))}"
                        ) from None
    return client


def import_distributed() -> ModuleType:
    try:
        import distributed
    except ImportError:
        raise MicrotronError("several workers need Dask, which is not installed: "
                             "pip install 'microtron[tune]'") from None
    found: ModuleType = distributed
    return found
