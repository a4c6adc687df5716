"""Which part of a tensor's range 8 bits are spent on: four methods, and the best of them by the
error that each causes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ..parameters import HIGH, LOW, Array, Scale
from .statistics import BINS, Histogram

PERCENTILE = 99.99              # of numbers on each side that keep their value
LEVELS = HIGH - LOW + 1
STEPS = 48                      # bounds that are tried on each side
LEAST = 0.05                    # the smallest part of a side that is tried


def min_max(histogram: Histogram) -> tuple[float, float]:
    """All of the range."""
    return histogram.low, histogram.high


def percentile(histogram: Histogram) -> tuple[float, float]:
    """All but a few of the largest and of the smallest numbers."""
    total = np.cumsum(histogram.counts)
    if not total[-1]:
        return min_max(histogram)
    width = (histogram.high - histogram.low) / BINS
    share = (100 - PERCENTILE) / 100
    first = int(np.searchsorted(total, share * total[-1], "right"))
    last = int(np.searchsorted(total, (1 - share) * total[-1], "left"))
    return histogram.low + first * width, histogram.low + (last + 1) * width


def entropy(histogram: Histogram) -> tuple[float, float]:
    """The range whose rounded distribution tells most of the true one: the least Kullback–Leibler
    divergence."""
    if not histogram.counts.any():
        return min_max(histogram)
    best, found = np.inf, min_max(histogram)
    centres = histogram.centres
    for part in np.linspace(LEAST, 1, STEPS):
        low, high = histogram.low * part, histogram.high * part
        inside = (centres >= low) & (centres <= high)
        if np.count_nonzero(inside) < LEVELS // 2:
            continue
        true = histogram.counts[inside].copy()
        true[0] += histogram.counts[centres < low].sum()
        true[-1] += histogram.counts[centres > high].sum()
        divergence = _divergence(true, histogram.counts[inside])
        if divergence < best:
            best, found = divergence, (float(low), float(high))
    return found


def _divergence(true: Array, counted: Array) -> float:
    """Of a distribution from one that has a single number for each of 256 levels."""
    level = np.arange(len(true)) * LEVELS // len(true)
    filled = counted > 0
    sums = np.bincount(level, counted, LEVELS)
    places = np.bincount(level, filled, LEVELS)
    rounded = np.where(filled, sums[level] / np.maximum(places[level], 1), 0)
    p, q = true / true.sum(), rounded / max(rounded.sum(), 1)
    where = p > 0
    return float(np.sum(p[where] * np.log(p[where] / np.maximum(q[where], 1e-12))))


def least_squares(histogram: Histogram) -> tuple[float, float]:
    """The range with the least mean squared error, of rounding inside and of clipping outside.
    Both sides are tried in all combinations: what each clips does not depend on the other."""
    lows, highs = _bounds(histogram.low), _bounds(histogram.high)
    centres, counts = histogram.centres, histogram.counts
    below = np.maximum(lows[:, None] - centres, 0)
    above = np.maximum(centres - highs[:, None], 0)
    clipped = (np.square(below) @ counts)[:, None] + np.square(above) @ counts
    inside = counts.sum() - histogram.zeros - ((below > 0) @ counts)[:, None] - (above > 0) @ counts
    steps = (highs - lows[:, None]) / (HIGH - LOW)
    errors = clipped + np.maximum(inside, 0) * np.square(steps) / 12
    low, high = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return float(lows[low]), float(highs[high])


def _bounds(end: float) -> Array:
    """Parts of a side, in order. NumPy's `unique` imports more than it is worth here."""
    return np.sort(end * np.linspace(LEAST, 1, STEPS)) if end else np.zeros(1)


def squared_error(histogram: Histogram, low: float, high: float) -> float:
    """The mean squared error of numbers that are stored with a range."""
    scale = Scale.from_range(low, high)
    centres, counts = histogram.centres, histogram.counts
    clipped = np.clip(centres, scale.low, scale.high)
    outside = float(np.dot(counts, np.square(centres - clipped)))
    rounds = float(counts[centres == clipped].sum()) - histogram.zeros
    return (outside + max(rounds, 0) * scale.scale ** 2 / 12) / max(float(counts.sum()), 1)


METHODS: dict[str, Callable[[Histogram], tuple[float, float]]] = {
    "minmax": min_max, "percentile": percentile, "entropy": entropy, "mse": least_squares}
BEST = "best"


def check_method(method: str) -> None:
    if method not in (*METHODS, BEST):
        raise MicrotronError(f"method is {quote(method)}, but must be one of "
                             f"{', '.join((BEST, *METHODS))}")


def choose_scale(histogram: Histogram, method: str) -> tuple[Scale, str]:
    """The scale of a tensor, and the method that it comes from."""
    if histogram.is_constant:
        return Scale.from_range(histogram.low, histogram.high), "constant"
    ranges = {name: function(histogram) for name, function in METHODS.items()
              if method in (name, BEST)}
    chosen = min(ranges, key=lambda name: squared_error(histogram, *ranges[name]))
    return Scale.from_range(*ranges[chosen]), chosen
