"""A model that stays loaded, for one inference after the other.

Each unit, the CPU and the accelerator, has a queue of its own: while the accelerator runs a program
for one inference, the CPU prepares the next and finishes the last. Inferences pass each stage in
the order in which they were submitted. Of a model with states, an inference begins when the one
before has ended.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING

from ...base.checked_values import quote
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ...base.keywords import check_keywords
from ...isa.memory_timing import MemoryTiming
from ...sim.arguments import check_type
from .compiled_model import CompiledModel
from .host import HostBackend
from .inference import Inference, Unit, stages_of
from .result import Result
from .state.session_state import SessionState
from .state.turns import Turns
from .tensors import convert_inputs

if TYPE_CHECKING:
    from ...sim.functional.order import Order

AHEAD = 4                   # inferences that `run_many` keeps in flight


@dataclass
class _Submitted:
    """An inference on its way, and the stage that comes next."""

    inference: Inference
    future: Future[Result]
    stage: int = 0


class Session:
    """A model loaded on a device, for repeated inference. Close it, or use it with `with`."""

    @check_keywords
    def __init__(self, model: CompiledModel, device: str = "cycle", *,
                 backend: HostBackend | None = None, allow_nan: bool = False,
                 memory: MemoryTiming | None = None, limit: int | None = None,
                 order: Order | None = None, waveform: Path | str | None = None) -> None:
        """Load a model on a device.

        backend     runs what falls back to the CPU; machine code unless given, with as many
                    threads as MICROTRON_THREADS says
        allow_nan   accept inputs with NaN

        The other options are those of `open_device`. Memory behaves as the model was compiled
        for unless given.
        """
        check_type("allow_nan", allow_nan, bool, "True or False")
        if backend is not None and not callable(getattr(backend, "nodes", None)):
            raise MicrotronError(f"backend is {quote(backend)}, but must be a HostBackend")
        self.model = model
        self.allow_nan = allow_nan
        self.device = device
        self.backend = _compiled_backend() if backend is None else backend
        self._stages, residents = stages_of(model, device, self.backend, {
            "memory": memory, "limit": limit, "order": order, "waveform": waveform})
        self._turns = {unit: threading.Lock() for unit in Unit}
        self._queues: dict[Unit, SimpleQueue[_Submitted | None]] = {}
        self._threads: list[threading.Thread] = []
        self._in_flight = 0
        self._state = threading.Condition()
        self._is_closed = False
        self._is_abandoned = False          # what has not begun a stage will not
        self._frames = Turns()              # of a model with states, one after the other
        self._memory = SessionState(model, residents, self._frames.wait, allow_nan=allow_nan)

    @property
    def state(self) -> SessionState:
        """What is remembered from one inference to the next, by name: to be read and set."""
        return self._memory

    def reset(self) -> None:
        """Forget what was before: states are what the model begins with."""
        self._check_open()
        self._memory.reset()

    def run(self, inputs: object) -> Result:
        """Run one inference and wait for it. After an error, states are what they were before;
        those in the accelerator's memory are lost if it had begun, and `reset` has to be called."""
        self._check_open()
        inference = self._begin(inputs)
        with self._frames.turn() if self.model.states else nullcontext():
            inference.values |= self._memory.arrays()
            try:
                for stage in self._stages:
                    with self._turns[stage.unit]:
                        stage.run(inference)
            except BaseException:
                self._memory.note_failure(inference.changes_device)
                raise
            self._memory.keep(inference.values)
        return self._result(inference)

    def submit(self, inputs: object) -> Future[Result]:
        """Queue one inference. The future has the result or the error. Wrong inputs are refused at
        once."""
        submitted = _Submitted(self._begin(inputs), Future())
        with self._state:
            self._check_open()
            self._start()
            self._in_flight += 1
        if self.model.states:
            self._frames.call_in_turn(lambda: self._pass_on(submitted))
        else:
            self._pass_on(submitted)
        return submitted.future

    def run_many(self, batches: Iterable[object]) -> list[Result]:
        """Run many inferences, CPU and accelerator in parallel; results in the order of the
        inputs. The first error ends it."""
        check_type("batches", batches, Iterable, "a sequence of inputs")
        results: list[Result] = []
        waiting: deque[Future[Result]] = deque()
        try:
            for inputs in batches:
                waiting.append(self.submit(inputs))
                if len(waiting) > AHEAD:
                    results.append(waiting.popleft().result())
            while waiting:
                results.append(waiting.popleft().result())
        finally:
            for future in waiting:
                future.cancel()
        return results

    def close(self) -> None:
        """Wait for what was submitted, then release the devices."""
        with self._state:
            self._is_closed = True
            self._state.wait_for(lambda: not self._in_flight)
        for queue in self._queues.values():
            queue.put(None)
        for thread in self._threads:
            thread.join()
        self._queues, self._threads, self._stages = {}, [], ()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._is_abandoned = error is not None
        self.close()

    def _begin(self, inputs: object) -> Inference:
        constants = {name: each.array for name, each in self.model.constants.items()}
        return Inference({**convert_inputs(self.model.inputs, inputs, allow_nan=self.allow_nan),
                          **constants})

    def _result(self, inference: Inference) -> Result:
        return Result(outputs={name: inference.values[name] for name in self.model.outputs},
                      types=self.model.outputs, reports=tuple(inference.reports),
                      device=self.device, nodes=self.model.nodes,
                      cpu_seconds=inference.cpu_seconds,
                      repack_seconds=inference.repack_seconds)

    def _check_open(self) -> None:
        if self._is_closed:
            raise MicrotronError("the session is closed; open another with Model.session")

    def _start(self) -> None:
        """A thread for each unit, once something is submitted."""
        if not self._threads:
            self._queues = {unit: SimpleQueue() for unit in Unit}
            self._threads = [threading.Thread(target=self._serve, args=(unit,), daemon=True,
                                              name=f"microtron {unit.value}") for unit in Unit]
            for thread in self._threads:
                thread.start()

    def _pass_on(self, submitted: _Submitted) -> None:
        """To whoever works on its next stage; models without stages are the CPU's."""
        unit = (self._stages[submitted.stage].unit if submitted.stage < len(self._stages)
                else Unit.CPU)
        self._queues[unit].put(submitted)

    def _serve(self, unit: Unit) -> None:
        while (submitted := self._queues[unit].get()) is not None:
            is_new = submitted.stage == 0
            if is_new and not submitted.future.set_running_or_notify_cancel():
                self._finish()
                continue
            try:
                if is_new:
                    submitted.inference.values |= self._memory.arrays()
                if self._advance(submitted, unit):
                    self._pass_on(submitted)
                    continue
                self._memory.keep(submitted.inference.values)
                result = self._result(submitted.inference)
            except BaseException as error:      # whoever waits is to know
                self._memory.note_failure(submitted.inference.changes_device)
                submitted.future.set_exception(error)
            else:
                submitted.future.set_result(result)
            self._finish()

    def _advance(self, submitted: _Submitted, unit: Unit) -> bool:
        """Work on all stages that are this unit's. Returns whether there are others after them."""
        while submitted.stage < len(self._stages):
            if self._is_abandoned:
                raise MicrotronError("the session ended before this inference did")
            stage = self._stages[submitted.stage]
            if stage.unit != unit:
                return True
            with self._turns[unit]:
                stage.run(submitted.inference)
            submitted.stage += 1
        return False

    def _finish(self) -> None:
        if self.model.states:
            self._frames.end_turn()
        with self._state:
            self._in_flight -= 1
            self._state.notify_all()


def _compiled_backend() -> HostBackend:
    from .compiled_host import CompiledBackend  # which loads LLVM

    return CompiledBackend()
