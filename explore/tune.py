"""Tunes a network: searches the schedules of its layers one by one, then keeps those with which
the whole stream is faster, since neighbours overlap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..base.errors import MicrotronError
from ..compiler.network.network import AcceleratorStep, Network
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.choice import candidates, estimates
from ..compiler.operators.description import Description
from ..compiler.operators.kernel import Options
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming
from ..runtime.models.compilation import ModelOptions, compile_to_network
from ..sim.simulated_cost import SimulatedCost
from .distributed.pool import Pool, SerialPool
from .features import features_of, steps_of
from .layer_sources import can_schedule
from .measure import measure_all
from .points import LayerPoint, Schedule
from .predictor import CostModel, import_xgboost, matrix_of
from .records import Records
from .search import METHODS, Space, run_search
from .time_left import time_left

LARGEST_SPACE = 1024        # schedules of a layer that are looked at, the best estimates
MOST_STEPS = 1024           # of a schedule, or
MORE_STEPS = 2              # times as many as the compiler's choice has
WORTH = 0.999               # of the cycles before: what gains less is not tried in the stream
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How much to search, and how."""

    method: str = "auto"
    trials: int = 64            # of each kind of layer
    streams: int = 8            # whole streams that are compiled and simulated
    seed: int = 0
    model: CostModel | None = None      # expects cycles instead of the estimate
    device: str = ""            # that measures layers, instead of the simulator

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise MicrotronError(f"method is {self.method!r}, but must be one of "
                                 f"{', '.join(METHODS)}")

    def method_for(self, size: int) -> str:
        """All schedules if there are few; otherwise guided, if there is a model to learn with."""
        if self.method != "auto":
            return self.method
        if size <= self.trials:
            return "exhaustive"
        try:
            import_xgboost()
        except MicrotronError:
            return "anneal"
        return "guided"


@dataclass(frozen=True)
class TunedLayer:
    """What a search found for a layer alone."""

    layer: Description
    times: int                  # that the network has it
    before: float               # cycles by the compiler's choice
    after: float
    schedule: Schedule
    trials: int
    space: int

    @property
    def gain(self) -> float:
        """Cycles of the network that this would save if layers did not overlap."""
        return self.times * (self.before - self.after)


@dataclass
class Tuned:
    """A tuned network: cycles of its stream before and after, and the schedules that were kept."""

    before: int
    after: int
    layers: list[TunedLayer] = field(default_factory=list)
    kept: dict[Description, Schedule] = field(default_factory=dict)
    streams: int = 0

    @property
    def gain(self) -> float:
        return 1 - self.after / self.before


@dataclass(frozen=True)
class LayerQuestion:
    """A layer whose schedules are searched."""

    layer: Description
    config: Config
    memory: MemoryTiming
    model: CostModel | None = None


def prepare_layer(asked: LayerQuestion) -> Iterator[tuple[Schedule, Space]]:
    """A task of a pool: the compiler's choice, and the schedules to search."""
    first = compiler_choice(asked)
    yield first, schedule_space(asked, first)


def compiler_choice(asked: LayerQuestion) -> Schedule:
    """What the compiler makes of a layer of a network, with exact cycles as its measure: in a form
    that has its neighbours' layouts."""
    kernel = operator_of(asked.layer).compile_spec(asked.layer, asked.config, Options(
        cost=SimulatedCost(asked.memory), memory=asked.memory))
    return Schedule(kernel.form.number, kernel.knobs)


def schedule_space(asked: LayerQuestion, first: Schedule, most: int = LARGEST_SPACE) -> Space:
    """Schedules that leave nothing to the host, those with the best estimates if there are more
    than so many. What is expected of each is what a cost model says, or the simulation of steps."""
    layer, config, memory = asked.layer, asked.config, asked.memory
    operator = operator_of(layer)
    found = {first: 0.0}
    for form in operator.forms_of(layer, config):
        if form.handicap == 1:
            for knobs, cycles in zip(candidates(operator.template, form),
                                     estimates(operator.template, form, memory), strict=True):
                found.setdefault(Schedule(form.number, knobs), cycles)
    points = [LayerPoint(layer, config, memory, each) for each in found]
    most_steps = max(MOST_STEPS, MORE_STEPS * steps_of(points[0]))
    points = [points[0], *(each for each in points[1:] if steps_of(each) <= most_steps)]
    points = sorted(points, key=lambda each: found[each.schedule])[:most]
    rows = [features_of(point) for point in points]
    expected = (asked.model.predict_points(points) if asked.model else
                np.exp2([row["pipeline"] for row in rows]))
    return Space([point.schedule for point in points], expected, matrix_of(rows, list(rows[0])))


class Tuner:
    """Searches one network on one configuration; measurements go to a store."""

    def __init__(self, path: Path, config: Config, memory: MemoryTiming, store: Path,
                 options: TuneOptions, tell: Tell = lambda doing: None,
                 pool: Pool | None = None) -> None:
        self.path, self.config, self.memory, self.store = path, config, memory, store
        self.options, self.tell = options, tell
        self.pool = pool or SerialPool()
        self.cost = SimulatedCost(memory)

    def tune(self) -> Tuned:
        """Search every kind of layer, then the stream."""
        self.tell("compiling as the compiler chooses")
        network = self._compile({})
        before = self._cycles(network)
        counts: dict[Description, int] = {}
        for step in network.steps:
            if isinstance(step, AcceleratorStep):
                for each in step.layers:
                    if can_schedule(each.spec):
                        counts[each.spec] = counts.get(each.spec, 0) + 1
        found = Tuned(before, before)
        found.layers = self._tune_layers(counts)
        self._tune_stream(found)
        return found

    def _tune_layers(self, counts: Mapping[Description, int]) -> list[TunedLayer]:
        """All layers: one after another here, or as many at a time as a cluster has workers, each
        searched by a thread that does little but wait for them."""
        begin = time.monotonic()

        def tune_one(number: int, layer: Description, times: int) -> TunedLayer:
            left = time_left(number - 1, len(counts), time.monotonic() - begin)
            self.tell(f"searching layer {number} of {len(counts)} ({layer.operator}){left}")
            return self.tune_layer(layer, times)
        asked = [(number, *each) for number, each in enumerate(counts.items(), 1)]
        if self.pool.size == 1:
            return [tune_one(*each) for each in asked]
        threads = ThreadPoolExecutor(self.pool.size)
        try:
            return [each.result() for each in [threads.submit(tune_one, *one) for one in asked]]
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def tune_layer(self, layer: Description, times: int = 1) -> TunedLayer:
        """The best schedule of a layer alone that the trials find."""
        [(first, space)] = self.pool.run(prepare_layer, [
            LayerQuestion(layer, self.config, self.memory, self.options.model)])
        known = run_search(self.options.method_for(len(space.schedules)), space,
                           lambda some: self._measure(layer, some), self.options.trials,
                           self.options.seed, first)
        best = min(known, key=lambda each: (known[each], each != first))
        return TunedLayer(layer, times, known[first], known[best], best, len(known),
                          len(space.schedules))

    def _measure(self, layer: Description, schedules: Sequence[Schedule]) -> list[float]:
        """Exact cycles of a layer alone, from the store where they are known."""
        points = [LayerPoint(layer, self.config, self.memory, each, self.options.device)
                  for each in schedules]
        measure_all(self.store, [points], pool=self.pool)
        with Records(self.store) as records:
            return [_cycles_in(records.find(point.to_json())) for point in points]

    def _tune_stream(self, found: Tuned) -> None:
        """Keep the schedules with which the whole stream is faster: all that gain alone, or, if
        that is no better, one after another."""
        gaining = sorted((each for each in found.layers if each.after < WORTH * each.before),
                         key=lambda each: -each.gain)
        trials = [gaining] if len(gaining) > 1 else []
        for some in [*trials, *([each] for each in gaining)]:
            schedules = {**found.kept, **{each.layer: each.schedule for each in some}}
            if found.streams == self.options.streams or schedules == found.kept:
                continue
            found.streams += 1
            self.tell(f"whole stream {found.streams}: {found.after} cycles so far, "
                      f"{found.before} before")
            cycles = self._cycles(self._compile(schedules))
            if cycles < found.after:
                found.after, found.kept = cycles, schedules

    def _compile(self, schedules: dict[Description, Schedule]) -> Network:
        from .. import __version__

        return compile_to_network(self.path, self.config, ModelOptions(
            memory=self.memory, cost=self.cost,
            schedules={layer: (each.form, each.knobs) for layer, each in schedules.items()}),
            version=__version__)

    def _cycles(self, network: Network) -> int:
        """Cycles of all programs of a network."""
        if not network.programs:
            raise MicrotronError(f"{self.path}: nothing of it runs on the accelerator")
        return sum(map(self.cost, network.programs))


def _cycles_in(measured: object) -> float:
    cycles = measured.get("cycles") if isinstance(measured, dict) else None
    return float(cycles) if isinstance(cycles, int) else math.inf
