"""Searches of one layer's schedules: all of them, simulated annealing, and guided by a model that
learns from what has been measured so far.

A search proposes schedules in batches and is told their exact cycles; infinity, if one cannot run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field

import numpy as np
import numpy.typing as npt

from .points import Schedule
from .predictor import Trees, import_xgboost

METHODS = ("auto", "exhaustive", "anneal", "guided")
BATCH = 8                   # schedules that are measured before the model learns from them
EXPLORED = 0.25             # part of a batch but the first that is chosen at random
WARM, COLD = 0.1, 0.002     # temperatures: relative losses that are taken with a chance of 1 / e
SETTINGS = {"objective": "rank:pairwise", "tree_method": "hist", "max_depth": 4, "nthread": 1,
            "learning_rate": 0.15, "min_child_weight": 1, "lambda": 1.0, "seed": 0}
ROUNDS = 60
GRADES = 31                 # of relevance, as ranking takes them

Measure = Callable[[Sequence[Schedule]], Sequence[float]]


@dataclass(frozen=True)
class Space:
    """The schedules of a layer, with what is known about each before it is measured."""

    schedules: Sequence[Schedule]
    expected: npt.NDArray[np.float64]           # cycles, by the estimate or a cost model
    features: npt.NDArray[np.float32]


@dataclass
class Search:
    """What has been measured so far."""

    space: Space
    measure: Measure
    trials: int
    rng: random.Random
    known: dict[int, float] = field(default_factory=dict)       # by the place in the space

    @property
    def left(self) -> int:
        return min(self.trials, len(self.space.schedules)) - len(self.known)

    @property
    def best(self) -> int:
        return min(self.known, key=lambda place: self.known[place])

    def try_all(self, places: Sequence[int]) -> None:
        """Measure some schedules, as many as are left and new."""
        new = [place for place in dict.fromkeys(places) if place not in self.known][:self.left]
        if new:
            found = self.measure([self.space.schedules[place] for place in new])
            self.known.update(zip(new, found, strict=True))

    def unknown(self) -> list[int]:
        """Places that have not been measured, the most promising first."""
        return [place for place in np.argsort(self.space.expected, kind="stable").tolist()
                if place not in self.known]


def run_search(method: str, space: Space, measure: Measure, trials: int, seed: int,
               first: Schedule) -> Mapping[Schedule, float]:
    """The schedules that were measured, with their cycles. The first one is among them."""
    search = Search(space, measure, trials, random.Random(seed))
    search.try_all([space.schedules.index(first)])
    METHOD[method](search)
    return {space.schedules[place]: cycles for place, cycles in search.known.items()}


def search_all(search: Search) -> None:
    """Every schedule, the most promising first, as far as the trials reach."""
    while search.left > 0:
        search.try_all(search.unknown()[:BATCH])


def anneal(search: Search) -> None:
    """Simulated annealing from the best start: one knob changes at a time, and what is worse is
    taken less and less often."""
    begin = search.unknown()[:1] or [search.best]
    search.try_all(begin)
    rows = [_values(each) for each in search.space.schedules]
    here = search.best
    while search.left > 0:
        progress = len(search.known) / search.trials
        temperature = WARM * (COLD / WARM) ** progress
        other = _neighbour(rows, here, search)
        search.try_all([other])
        loss = search.known[other] / search.known[here] - 1
        if loss <= 0 or search.rng.random() < math.exp(-loss / temperature):
            here = other


def _values(schedule: Schedule) -> tuple[object, ...]:
    return (schedule.form, *astuple(schedule.knobs))


def _neighbour(rows: Sequence[tuple[object, ...]], here: int, search: Search) -> int:
    """A schedule that is not known yet and differs in as few knobs as any."""
    unknown = [place for place in range(len(rows)) if place not in search.known]
    distances = [sum(one != other for one, other in zip(rows[place], rows[here], strict=False))
                 for place in unknown]
    least = min(distances)
    return search.rng.choice([place for place, distance in zip(unknown, distances, strict=True)
                              if distance == least])


def search_guided(search: Search) -> None:
    """The schedules that are expected to be the best, then batches that a ranking model finds
    promising, and some at random, from which it learns."""
    search.try_all(search.unknown()[:BATCH])
    while search.left > 0:
        scores = _scores(search)
        order = sorted(search.unknown(), key=lambda place: -scores[place])
        size = min(BATCH, search.left)
        random_ones = search.rng.sample(order, min(len(order), math.ceil(EXPLORED * size)))
        search.try_all([*order[:size - len(random_ones)], *random_ones])


def _scores(search: Search) -> npt.NDArray[np.float32]:
    """How promising each schedule is, to a model that has seen those that are known."""
    library = import_xgboost()
    places = list(search.known)
    cycles = np.array([search.known[place] for place in places])
    finite = cycles[np.isfinite(cycles)]
    if len(finite) < 2:
        return (-search.space.expected).astype(np.float32)
    ratio = np.minimum(cycles, 4 * finite.min()) / finite.min()
    grades = np.round(GRADES * (1 - np.log2(ratio) / 2)).astype(int)
    features = np.column_stack([search.space.features, np.log2(search.space.expected)])
    trees: Trees = library.train(SETTINGS, library.DMatrix(
        features[places], grades, group=[len(places)]), ROUNDS)
    return trees.inplace_predict(features)


METHOD: dict[str, Callable[[Search], None]] = {
    "exhaustive": search_all, "anneal": anneal, "guided": search_guided}
