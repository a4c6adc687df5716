"""How good predictions are on what a model has not seen: folds by configuration and by layer, never
by row, and the errors that they leave."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import product

import numpy as np
import numpy.typing as npt

from ..base.errors import MicrotronError

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
BINS = 20                   # of a calibration


class HeldOut(Enum):
    """What no row of the training data shares with a row that is judged."""

    CONFIGURATIONS = "configurations"
    LAYERS = "layers"
    BOTH = "configurations and layers"


@dataclass(frozen=True)
class Errors:
    """What is left between predictions and exact cycles."""

    rows: int
    spearman: float         # rank correlation
    median: float           # of relative errors
    percentile_90: float
    percentile_99: float

    def to_dict(self) -> dict[str, float]:
        return {name: round(value, 5) for name, value in asdict(self).items()}


def errors_of(predicted: Floats, exact: Floats) -> Errors:
    relative = np.abs(predicted / exact - 1)
    return Errors(len(exact), spearman(predicted, exact), *(
        float(each) for each in np.percentile(relative, (50, 90, 99))))


def spearman(one: Floats, other: Floats) -> float:
    """The correlation of ranks; equal numbers share theirs."""
    ranks = [_ranks(each) - (len(each) - 1) / 2 for each in (one, other)]
    size = np.sqrt(np.prod([each @ each for each in ranks]))
    return float(ranks[0] @ ranks[1] / size) if size else float("nan")


def _ranks(values: Floats) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Floats = (last - counts + last - 1) / 2
    return mean[places]


def folds(held_out: HeldOut, configurations: Sequence[str], layers: Sequence[str], count: int,
          seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Rows to train on and rows to judge by: every row is judged once, in one of `count` folds, or
    of their pairs where both are held out. Rows that share one of the two with the judged ones are
    used for neither then."""
    one = _parts(configurations, count, seed, "configurations")
    other = _parts(layers, count, seed, "layers")
    for first, second in _held_out(held_out, count):
        in_one, in_other = one == first, other == second
        judged = (in_one | (first is None)) & (in_other | (second is None))
        trained = ~in_one & ~in_other
        if judged.any() and trained.any():
            yield np.flatnonzero(trained), np.flatnonzero(judged)


def _held_out(held_out: HeldOut, count: int) -> Iterator[tuple[int | None, int | None]]:
    """The folds of configurations and of layers that are judged together; None: all of them."""
    numbers: list[int | None] = list(range(count))
    anything: list[int | None] = [None]
    yield from product(anything if held_out is HeldOut.LAYERS else numbers,
                       anything if held_out is HeldOut.CONFIGURATIONS else numbers)


def _parts(names: Sequence[str], count: int, seed: int, what: str) -> npt.NDArray[np.intp]:
    """The fold of each row: that of its configuration, or of its layer."""
    distinct = sorted(set(names))
    if len(distinct) < count:
        raise MicrotronError(f"folds is {count}, but the data have {len(distinct)} {what}; "
                             f"collect more, or take fewer folds")
    random.Random(seed).shuffle(distinct)
    place = {name: number % count for number, name in enumerate(distinct)}
    return np.array([place[name] for name in names])


def calibration(predicted: Floats, exact: Floats) -> list[dict[str, object]]:
    """Rows in order of what was predicted, in bins of equal size, with the ratio of exact to
    predicted cycles in each: 1 everywhere if a model is calibrated."""
    order = np.argsort(predicted, kind="stable")
    found: list[dict[str, object]] = []
    for some in np.array_split(order, min(BINS, len(order))):
        ratios = exact[some] / predicted[some]
        low, middle, high = np.percentile(ratios, (10, 50, 90))
        found.append({"rows": len(some), "predicted": float(np.median(predicted[some])),
                      "exact": float(np.median(exact[some])), "ratio_10": float(low),
                      "ratio_50": float(middle), "ratio_90": float(high)})
    return found
