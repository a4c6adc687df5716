"""Searches configurations for networks on a board, in three fidelities.

    bound       what does not fit, or is dominated even at its bound, goes no further
    predicted   cycles by a cost model or the analytic estimate: NSGA-II ranks with these
    exact       the predicted front is compiled and simulated, and its own front is the answer

Areas are predicted throughout. A trial is a point of the unit cube, from which fields are chosen
one after another among values that are legal with those before: no trial is illegal. The bus is as
wide as that of the board's preset, with which its memory was measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import ModuleType

from ...base.checked_values import near_misses, quote
from ...base.errors import MicrotronError
from ...compiler.errors import CompileError
from ...isa.config import PRESETS, Config
from ...isa.memory_timing import MemoryTiming
from ..predictor import CostModel
from ..records import Records
from ..sampling import CONFIG_FIELDS, choose_config
from .board_budget import Budget, UnfitError
from .workload import Task, exact_cycles, least_cycles, predicted_cycles

OBJECTIVES = ("latency", "lut", "register", "dsp", "bram")
POPULATION = 32
WORST = 1e18                # what a trial is told that has no value
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is searched."""

    tasks: Sequence[Task]
    budget: Budget
    memory: MemoryTiming
    objectives: Sequence[str] = ("latency", "lut", "dsp")
    model: CostModel | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for each in self.objectives:
            if each not in OBJECTIVES:
                raise MicrotronError(f"objective is {quote(each)}, but must be one of "
                                     f"{', '.join(OBJECTIVES)}{near_misses(each, OBJECTIVES)}")
        if "latency" not in self.objectives or len(set(self.objectives)) != len(self.objectives):
            raise MicrotronError(f"objectives are {', '.join(self.objectives)}, but must name "
                                 f"latency and each at most once")


@dataclass(frozen=True)
class Point:
    """A configuration with what it takes."""

    config: Config
    cycles: float
    area: dict[str, float]
    exact: bool = False

    def values(self, objectives: Sequence[str]) -> tuple[float, ...]:
        return tuple(self.cycles if each == "latency" else self.area[each]
                     for each in objectives)


@dataclass
class Exploration:
    """What has been found so far."""

    question: Question
    predicted: dict[Config, Point] = field(default_factory=dict)
    exact: dict[Config, Point] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)     # trials by reason
    examples: dict[str, str] = field(default_factory=dict)      # one of each reason
    trials: int = 0

    @property
    def front(self) -> list[Point]:
        """Exact points that no other one beats, the fastest first."""
        return pareto_front(list(self.exact.values()), self.question.objectives)


def pareto_front(points: Sequence[Point], objectives: Sequence[str]) -> list[Point]:
    """Points that no other point equals or beats in all objectives, by latency."""
    found: list[Point] = []
    for point in sorted(points, key=lambda each: each.values(objectives)):
        if not any(dominates(other, point, objectives) for other in found):
            found.append(point)
    return sorted(found, key=lambda each: each.cycles)


def dominates(one: Point, other: Point, objectives: Sequence[str]) -> bool:
    return all(mine <= theirs for mine, theirs in zip(
        one.values(objectives), other.values(objectives), strict=True))


def search(found: Exploration, *, trials: int | None, until: float | None = None,
           tell: Tell = lambda doing: None) -> None:
    """Rank so many configurations by predictions, or as many as the time allows."""
    optuna = import_optuna()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    objectives = found.question.objectives
    bus_bits = PRESETS[found.question.budget.board.preset].bus_bits
    study = optuna.create_study(
        directions=["minimize"] * len(objectives),
        sampler=optuna.samplers.NSGAIISampler(population_size=POPULATION,
                                              seed=found.question.seed))
    for number in count() if trials is None else range(trials):
        if until is not None and time.monotonic() >= until:
            break
        trial = study.ask()
        row = [trial.suggest_float(name, 0.0, 1.0) for name in CONFIG_FIELDS]
        point = _predict(found, replace(choose_config(row), bus_bits=bus_bits))
        study.tell(trial, [WORST] * len(objectives) if point is None else
                   list(point.values(objectives)))
        found.trials += 1
        tell(f"trial {number + 1}{f' of {trials}' if trials else ''}: {len(found.predicted)} fit, "
             f"{sum(found.rejected.values())} rejected")


def _predict(found: Exploration, config: Config) -> Point | None:
    """A configuration by the first two fidelities; None if it is rejected."""
    if config in found.predicted:
        return found.predicted[config]
    question = found.question
    try:
        area = question.budget.check(config)
        least = Point(config, least_cycles(question.tasks, config, question.memory), area)
        if any(dominates(each, least, question.objectives)
               for each in found.predicted.values()):
            _reject(found, "dominated even at its bound", config, f"{least.cycles:,.0f} cycles at "
                    f"least, and another configuration with no more area is predicted to take no "
                    f"more")
            return None
        cycles = predicted_cycles(question.tasks, config, question.memory, question.model)
    except UnfitError as error:
        _reject(found, f"too little: {error.short}", config, str(error))
        return None
    except CompileError as error:
        _reject(found, "a layer does not fit", config, str(error))
        return None
    found.predicted[config] = Point(config, cycles, area)
    return found.predicted[config]


def _reject(found: Exploration, reason: str, config: Config, detail: str) -> None:
    found.rejected[reason] += 1
    found.examples.setdefault(
        reason, f"batch {config.batch}, {config.block_in} × {config.block_out}, "
                f"{config.alu_lanes} lanes, {config.acc_banks} banks: {detail}")


def finish(found: Exploration, records: Records, *, finalists: int, until: float | None = None,
           tell: Tell = lambda doing: None,
           show: Callable[[Exploration], None] = lambda found: None) -> None:
    """Simulate the predicted front exactly, at most so many of it, spread over its length. `show`
    is called after each, so that whoever is stopped has what there is."""
    front = pareto_front(list(found.predicted.values()), found.question.objectives)
    for number, point in enumerate(spread(front, finalists), 1):
        if until is not None and found.exact and time.monotonic() >= until:
            break
        tell(f"simulating {number} of {min(len(front), finalists)}")
        try:
            measure(found, point.config, records)
        except CompileError as error:
            _reject(found, "a layer does not fit", point.config, str(error))
            continue
        show(found)


def measure(found: Exploration, config: Config, records: Records) -> Point:
    """The exact cycles of a configuration."""
    question = found.question
    point = Point(config, exact_cycles(question.tasks, config, question.memory, records),
                  question.budget.area(config), exact=True)
    found.exact[config] = point
    return point


def spread(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many points, the first and the last among them, at even distances."""
    if len(points) <= most:
        return list(points)
    steps = max(1, most - 1)
    return [points[round(number * (len(points) - 1) / steps)] for number in range(most)]


def import_optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise MicrotronError("searches of configurations need Optuna, which is not installed: "
                             "pip install 'microtron[explore]'") from None
    found: ModuleType = optuna
    return found
