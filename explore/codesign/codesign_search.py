"""Searches configurations for networks on a board, in three fidelities.

    bound       what does not fit, or is dominated even at its bound, goes no further
    predicted   cycles by a cost model or the analytic estimate: NSGA-II ranks with these
    exact       the predicted front is compiled and simulated, and its own front is the answer:
                in rounds, since what is known exactly corrects predictions of the rest

Areas are predicted throughout. A trial is a point of the unit cube, from which fields are chosen
one after another among values that are legal with those before: no trial is illegal. Presets are
the first trials. The bus is as wide as that of the board's preset, with which its memory was
measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from ...compiler.errors import CompileError
from ...isa.config import PRESETS, Config
from ..distributed.pool import Pool, SerialPool
from ..records import Records
from ..sampling import CONFIG_FIELDS, choose_config
from ..time_left import time_left
from .board_budget import UnfitError
from .correction import fit_correction
from .front import Front, Point, RoutedPoint, dominates, pareto_front
from .question import Question
from .study import POPULATION, WORST, Study, begun_trials, open_study
from .workload import (
    Prediction,
    exact_cycles,
    least_cycles,
    measure_configs,
    predict_config,
    predicted_cycles,
)

ROUNDS = 4                  # of exact simulations
Tell = Callable[[str], None]
Predicted = Mapping[Config, float | CompileError]       # cycles, or why there are none


@dataclass
class Exploration:
    """What has been found so far."""

    question: Question
    predicted: dict[Config, Point] = field(default_factory=dict)
    exact: dict[Config, Point] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)     # trials by reason
    examples: dict[str, str] = field(default_factory=dict)      # one of each reason
    trials: int = 0
    routed: dict[Config, RoutedPoint] = field(default_factory=dict)     # points that were built

    @property
    def front(self) -> Front:
        """Exact points that no other one beats, the fastest first."""
        return pareto_front(list(self.exact.values()), self.question.objectives)

    def _repr_html_(self) -> str:
        """In a notebook: the front."""
        return self.front._repr_html_()


def search(found: Exploration, *, trials: int | None, until: float | None = None,
           tell: Tell = lambda doing: None, pool: Pool | None = None,
           storage: str | None = None) -> None:
    """Rank so many configurations by predictions, or as many as the time allows. With a storage
    of Optuna, trials of all who search there count, and are known to all."""
    pool, question = pool or SerialPool(), found.question
    bus_bits = PRESETS[question.budget.board.preset].bus_bits
    study = open_study(question, storage)
    begin = time.monotonic()
    while (size := _next_generation(found, study, trials)) > 0:
        asked = [study.ask() for _ in range(size)]
        configs = [_config_of([trial.suggest_float(name, 0.0, 1.0) for name in CONFIG_FIELDS],
                              bus_bits) for trial in asked]
        known = _predict_ahead(found, configs, pool)
        for trial, config in zip(asked, configs, strict=True):
            if until is not None and time.monotonic() >= until:
                return
            point = _predict(found, config, known)
            study.tell(trial, [WORST] * len(question.objectives) if point is None else
                       list(point.values(question.objectives)))
            found.trials += 1
            tell(f"trial {found.trials}{f' of {trials}' if trials else ''}: "
                 f"{len(found.predicted)} fit, {sum(found.rejected.values())} rejected"
                 f"{time_left(found.trials, trials, time.monotonic() - begin)}")


def _next_generation(found: Exploration, study: Study, trials: int | None) -> int:
    """How many trials come next, after a look at those of others."""
    done = begun_trials(study)
    bus_bits = PRESETS[found.question.budget.board.preset].bus_bits
    latency = found.question.objectives.index("latency")
    if len(done) > found.trials:                # somebody else searches, too
        for trial in done:
            if trial.values and trial.values[latency] < WORST:
                config = _config_of([trial.params[name] for name in CONFIG_FIELDS], bus_bits)
                if config not in found.predicted:
                    found.predicted[config] = Point(config, trial.values[latency],
                                                    found.question.budget.area(config))
    return POPULATION if trials is None else min(POPULATION, trials - len(done))


def _config_of(row: Sequence[float], bus_bits: int) -> Config:
    return replace(choose_config(row), bus_bits=bus_bits)


def _predict_ahead(found: Exploration, configs: Sequence[Config], pool: Pool) -> Predicted:
    """Predictions for a generation on the workers of a cluster, but of what is rejected anyway.
    What becomes of them is decided in the order of the trials, as if there were no workers."""
    if pool.size == 1:
        return {}
    question, wanted = found.question, []
    for config in dict.fromkeys(configs):
        with suppress(UnfitError, CompileError):
            if config not in found.predicted and not _is_dominated(found, _least(found, config)):
                wanted.append(Prediction(question.tasks, config, question.memory, question.model))
    return dict(pool.run(predict_config, wanted))


def _least(found: Exploration, config: Config) -> Point:
    """A configuration with its area, and the fewest cycles that it could take."""
    question = found.question
    return Point(config, least_cycles(question.tasks, config, question.memory),
                 question.budget.check(config))


def _is_dominated(found: Exploration, least: Point) -> bool:
    return any(dominates(each, least, found.question.objectives)
               for each in found.predicted.values())


def _predict(found: Exploration, config: Config, known: Predicted) -> Point | None:
    """A configuration by the first two fidelities; None if it is rejected."""
    if config in found.predicted:
        return found.predicted[config]
    question = found.question
    try:
        least = _least(found, config)
        if _is_dominated(found, least):
            _reject(found, "dominated even at its bound", config, f"{least.cycles:,.0f} cycles at "
                    f"least, and another configuration with no more area is predicted to take no "
                    f"more")
            return None
        cycles = known[config] if config in known else predicted_cycles(
            question.tasks, config, question.memory, question.model)
        if isinstance(cycles, CompileError):
            raise cycles
    except UnfitError as error:
        _reject(found, f"too little: {error.short}", config, str(error))
        return None
    except CompileError as error:
        _reject(found, "a layer does not fit", config, str(error))
        return None
    found.predicted[config] = replace(least, cycles=cycles)
    return found.predicted[config]


def _reject(found: Exploration, reason: str, config: Config, detail: str) -> None:
    found.rejected[reason] += 1
    found.examples.setdefault(
        reason, f"batch {config.batch}, {config.block_in} × {config.block_out}, "
                f"{config.alu_lanes} lanes, {config.acc_banks} banks: {detail}")


def finish(found: Exploration, records: Records, *, finalists: int, until: float | None = None,
           tell: Tell = lambda doing: None,
           show: Callable[[Exploration], None] = lambda found: None,
           pool: Pool | None = None) -> None:
    """Simulate the predicted front exactly, and what is behind it while there are fewer than so
    many. `show` is called after each, so that whoever is stopped has what there is."""
    question, tried = found.question, set(found.exact)
    before, last, begin = len(tried), len(tried) + finalists, time.monotonic()
    while len(tried) < last:
        chosen = _next_finalists(found, tried, min(last - len(tried), -(-finalists // ROUNDS)))
        if not chosen:
            return
        tried.update(chosen)
        tell(f"simulating {len(chosen)} configurations")
        with closing(measure_configs(question.tasks, chosen, question.memory, records,
                                     pool or SerialPool())) as results:
            for config, error in results:
                if error is None:
                    measure(found, config, records)
                    show(found)
                else:
                    _reject(found, "a layer does not fit", config, error)
                tell(f"simulating: {describe(found, len(found.exact) - before, finalists, begin)}")
                if until is not None and found.exact and time.monotonic() >= until:
                    return


def _next_finalists(found: Exploration, tried: Set[Config], most: int) -> list[Config]:
    """Those that are in front by predictions, which exact points correct, or right behind it."""
    rest = [point for config, point in found.predicted.items() if config not in tried]
    points = fit_correction(found.predicted, found.exact).correct(rest)
    return [point.config for point in choose_finalists(
        [*found.exact.values(), *points], found.question.objectives, most)]


def describe(found: Exploration, done: int, count: int, begin: float) -> str:
    """How far exact simulations have come."""
    best = "".join(f", at best {point.cycles:,.0f} cycles" for point in found.front[:1])
    return f"{done} of {count} done{best}{time_left(done, count, time.monotonic() - begin)}"


def measure_baseline(found: Exploration, config: Config, records: Records) -> Point:
    """The exact cycles of a configuration to compare with: a point of the search, too, if it is one
    that can be found."""
    question = found.question
    try:
        area = question.budget.check(config)
    except UnfitError:
        return measure(Exploration(question), config, records)
    if config.bus_bits != PRESETS[question.budget.board.preset].bus_bits:
        return measure(Exploration(question), config, records)
    point = measure(found, config, records)
    found.predicted[config] = Point(config, predicted_cycles(
        question.tasks, config, question.memory, question.model), area)
    return point


def measure(found: Exploration, config: Config, records: Records) -> Point:
    """The exact cycles of a configuration."""
    question = found.question
    point = Point(config, exact_cycles(question.tasks, config, question.memory, records),
                  question.budget.area(config), exact=True)
    found.exact[config] = point
    return point


def choose_finalists(points: Sequence[Point], objectives: Sequence[str],
                     most: int) -> list[Point]:
    """The front of some points, then the front of the others, and so on: predictions err, and what
    is close behind may be in front. Of one that is too long, points spread over its length. Exact
    points are on fronts, too, but known already."""
    found: list[Point] = []
    rest = list(points)
    while rest and len(found) < most:
        front = pareto_front(rest, objectives)
        found += spread([point for point in front if not point.exact], most - len(found))
        ahead = {point.config for point in front}
        rest = [point for point in rest if point.config not in ahead]
    return found


def spread(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many points, the first and the last among them, at even distances."""
    if len(points) <= most:
        return list(points)
    steps = max(1, most - 1)
    return [points[round(number * (len(points) - 1) / steps)] for number in range(most)]
