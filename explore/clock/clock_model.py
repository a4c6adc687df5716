"""Predicts the clock of a configuration that nobody has routed: the logarithm of its period is a
sum of a few counts with weights, which are fitted to routed designs by ridge regression.

Routed designs are few, and another seed alone moves a clock by some percent. So counts are few,
weights are drawn towards none as much as leaving one configuration out asks for, and what the
model is worth stands beside it: its errors and its ranking of held-out configurations.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log2
from os import PathLike
from pathlib import Path

import numpy as np

from ...base.atomic_files import write_atomically
from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ...isa.config import Config
from ..area.area_model import shipped_area_model
from ..data_files import are_weights, not_a_model, read_measured, read_model
from ..points import CLOCK, CLOCK_FAMILIES
from ..validation import Floats, errors_of, spearman

NAME, VERSION = "clock model", 1
LEAST_CONFIGS = 10          # of a family
RIDGES = np.logspace(-3, 3, 25)         # times the number of configurations
ONCE, LUTS = "once", "LUTs"
MODEL, LUTS_ALONE, CONSTANT, OTHER_SEEDS = ("clock model", "LUTs alone", "constant",
                                            "other seeds of the same")
WORTH_RANKING = 0.5         # rank correlation below which nothing should be ranked by a model
Weights = Mapping[str, float]                   # by count
Judged = dict[str, dict[str, float | None]]     # errors by what predicted


@dataclass(frozen=True)
class ClockRow:
    """One routed design."""

    config: Config
    family: str
    mhz: float

    @property
    def log_period(self) -> float:
        """Of the period in nanoseconds."""
        return log(1000 / self.mhz)


def clock_counts(config: Config, family: str) -> dict[str, float]:
    """What long paths grow with. LUTs are those that the area model expects."""
    area = shipped_area_model().predict(config, family)
    return {LUTS: log2(area["lut"]), "blocks of RAM": log2(area["bram"]),
            "multipliers": log2(area["dsp"]), "block_in": log2(config.block_in),
            "vector": log2(config.batch * config.block_out), "lanes": log2(config.alu_lanes),
            "banks": log2(config.acc_banks), "bus": log2(config.bus_bytes),
            "windows": config.has_windows, "tables": bool(config.tables)}


@dataclass(frozen=True)
class ClockModel:
    """Predicts clocks in MHz."""

    weights: Mapping[str, Weights]                  # by family
    errors: Mapping[str, Judged]                    # held-out configurations, by family

    def predict(self, config: Config, family: str) -> float:
        """The clock in MHz that the accelerator alone is expected to reach on a family."""
        if family not in self.weights:
            raise MicrotronError(f"family is {quote(family)}, but must be one of "
                                 f"{', '.join(self.weights)}")
        return 1000 / exp(_predict(self.weights[family], clock_counts(config, family)))

    def save(self, path: Path) -> None:
        write_atomically(path, (json.dumps(
            {"format": f"microtron {NAME}", "version": VERSION, "weights": self.weights,
             "errors": self.errors}, indent=1) + "\n").encode())

    def doubts(self) -> list[str]:
        """Why nobody should rank configurations by this model, for each family where it is so."""
        found = []
        for family, errors in self.errors.items():
            reached, by_luts = (errors[each]["spearman"] or 0.0 for each in (MODEL, LUTS_ALONE))
            if reached < max(WORTH_RANKING, by_luts):
                found.append(f"{family}: do not rank configurations by this model: its rank "
                             f"correlation is {reached:.2f}, that of LUTs alone {by_luts:.2f}")
        return found


def _predict(weights: Weights, counts: Mapping[str, float]) -> float:
    return weights[ONCE] + sum(weights.get(name, 0.0) * count for name, count in counts.items())


def fit_clock(rows: Sequence[ClockRow], folds: int | None = None, seed: int = 0) -> ClockModel:
    """A model of all rows, judged by folds that hold out whole configurations; unless told how
    many, each configuration alone."""
    weights, errors = {}, {}
    for family in CLOCK_FAMILIES:
        some = [row for row in rows if row.family == family]
        configs = len({row.config for row in some})
        if configs < max(LEAST_CONFIGS, folds or 0):
            raise MicrotronError(f"{family}: there are {len(some)} rows of {configs} "
                                 f"configurations, but a clock model needs "
                                 f"{max(LEAST_CONFIGS, folds or 0)} configurations or more")
        weights[family] = fit_weights(some)
        errors[family] = _judge(some, folds or configs, seed)
    return ClockModel(weights, errors)


def fit_weights(rows: Sequence[ClockRow], names: Sequence[str] | None = None) -> dict[str, float]:
    """Ridge regression on configurations, each with the mean of its rows. The ridge is the one
    that leaves the least error on each configuration that is left out."""
    mean = _by_config(rows)
    counts = [clock_counts(config, rows[0].family) for config in mean]
    names = list(counts[0]) if names is None else list(names)
    exact = np.array(list(mean.values()))
    raw = np.array([[each[name] for name in names] for each in counts], float)
    centre, spread = raw.mean(axis=0), raw.std(axis=0)
    spread[spread == 0] = np.inf                        # what never changes has no weight
    left, sizes, right = np.linalg.svd((raw - centre) / spread, full_matrices=False)
    target = left.T @ (exact - exact.mean())
    shrinks = [sizes ** 2 / (sizes ** 2 + ridge * len(exact)) for ridge in RIDGES]
    shrink = min(shrinks, key=lambda each: _left_out_error(left, each, exact))
    kept = np.divide(shrink, sizes, out=np.zeros_like(sizes), where=sizes > 1e-9)
    weights = right.T @ (kept * target) / spread
    return {ONCE: float(exact.mean() - centre @ weights),
            **dict(zip(names, weights.tolist(), strict=True))}


def _left_out_error(left: Floats, shrink: Floats, exact: Floats) -> float:
    """The mean square of what is left when each configuration is predicted from the others: by
    how much a configuration moves its own prediction, this is known without fitting anew."""
    own = 1 / len(exact) + (left ** 2) @ shrink
    error = exact - exact.mean() - left @ (shrink * (left.T @ (exact - exact.mean())))
    return float(np.mean((error / np.maximum(1 - own, 1e-9)) ** 2))


def _by_config(rows: Iterable[ClockRow]) -> dict[Config, float]:
    """The mean of each configuration's logarithms of periods."""
    found: dict[Config, list[float]] = {}
    for row in rows:
        found.setdefault(row.config, []).append(row.log_period)
    return {config: sum(some) / len(some) for config, some in found.items()}


def _judge(rows: Sequence[ClockRow], folds: int, seed: int) -> Judged:
    """Errors of periods on configurations that were held out, by what predicted them. Ranks of
    LUTs alone need no fit, and a constant ranks nothing."""
    exact = np.array([1000 / row.mhz for row in rows])
    luts = np.array([clock_counts(row.config, row.family)[LUTS] for row in rows])

    def errors(names: Sequence[str] | None) -> dict[str, float | None]:
        predicted, ranking = _held_out(rows, folds, seed, lambda train: fit_weights(train, names))
        return {**errors_of(np.exp(predicted), exact).to_dict(),
                "spearman": round(spearman(ranking, exact), 5)}
    found: Judged = {MODEL: errors(None),
                     LUTS_ALONE: {**errors([LUTS]), "spearman": round(spearman(luts, exact), 5)},
                     CONSTANT: {**errors([]), "spearman": None}}
    again = [row for row in rows if sum(row.config == each.config for each in rows) > 1]
    if len({row.config for row in again}) > 2:
        others = [_by_config(each for each in again if each is not row)[row.config]
                  for row in again]
        found[OTHER_SEEDS] = {**errors_of(np.exp(others), np.array(
            [1000 / row.mhz for row in again])).to_dict()}
    return found


def _held_out(rows: Sequence[ClockRow], folds: int, seed: int,
              fit: Callable[[Sequence[ClockRow]], Weights]) -> tuple[Floats, Floats]:
    """Logarithms of periods, each by a fit that has not seen the configuration; and what to rank
    by: how far each is from what its fit expects of all. A fit that has not seen a long period
    expects less of all others too, which alone would turn ranks around."""
    configs = sorted({row.config for row in rows}, key=lambda config: config.digest)
    random.Random(seed).shuffle(configs)
    part = {config: number % folds for number, config in enumerate(configs)}
    counts = {config: clock_counts(config, rows[0].family) for config in configs}
    predicted, ranking = np.zeros(len(rows)), np.zeros(len(rows))
    for number in range(folds):
        weights = fit([row for row in rows if part[row.config] != number])
        expected = {config: _predict(weights, each) for config, each in counts.items()}
        mean = sum(expected.values()) / len(expected)
        for place, row in enumerate(rows):
            if part[row.config] == number:
                predicted[place] = expected[row.config]
                ranking[place] = expected[row.config] - mean
    return predicted, ranking


def read_clocks(paths: Iterable[Path]) -> list[ClockRow]:
    """The rows of tables of `microtron dataset --clock`."""
    return [ClockRow(config, family, mhz) for path in paths
            for config, family, [mhz] in read_measured(path, ["mhz"], CLOCK, CLOCK_FAMILIES)]


def load_clock_model(path: str | PathLike[str]) -> ClockModel:
    """Read a clock model that `microtron fit` wrote."""
    file, given = read_model(path, NAME, VERSION)
    if not _are_weights(given.get("weights")):
        raise not_a_model(file, NAME, VERSION)
    return ClockModel(given["weights"], given.get("errors") or {})


def _are_weights(given: object) -> bool:
    return isinstance(given, dict) and bool(given) and all(
        family in CLOCK_FAMILIES and are_weights(names) and ONCE in names
        for family, names in given.items())
