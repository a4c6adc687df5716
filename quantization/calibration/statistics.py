"""What calibration knows of tensors: their ranges after one pass over the samples, histograms after
another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ...base.checked_values import show_name
from ...base.errors import MicrotronError
from ..parameters import Array, Scale
from ..selection import Selection
from ..simulation import Simulator
from .levels import Levels

BINS = 2048
LEAST_RANGE = 1e-30             # of a tensor; what is smaller has no bins in 32-bit floats
MOST_COUNTED = 1 << 17          # numbers of a tensor that one sample adds to a histogram
Say = Callable[[str], None]


@dataclass
class Range:
    """The least and the largest number that was seen."""

    low: float = np.inf
    high: float = -np.inf

    def add(self, array: Array) -> None:
        self.low = min(self.low, float(array.min()))
        self.high = max(self.high, float(array.max()))

    @property
    def with_zero(self) -> tuple[float, float]:
        return min(0.0, self.low), max(0.0, self.high)


@dataclass
class Histogram:
    """How often numbers were seen, in bins of equal width. Zeros are counted apart: they are
    exact at every scale."""

    low: float
    high: float
    counts: Array = field(default_factory=lambda: np.zeros(BINS))
    zeros: float = 0.0
    exact: Scale | None = None      # the scale at which every number is one of 256 levels

    def add(self, array: Array) -> None:
        values = array.reshape(-1)
        if values.size > MOST_COUNTED:
            values = values[::-(-values.size // MOST_COUNTED)]
        if not self.is_constant:
            places = (values - np.float32(self.low)) * np.float32(BINS / (self.high - self.low))
            index = np.clip(places.astype(np.int64), 0, BINS - 1)
            self.counts += np.bincount(index, minlength=BINS)
        self.zeros += np.count_nonzero(values == 0)

    @property
    def is_constant(self) -> bool:
        """Whether all numbers are as good as one."""
        return self.high - self.low < LEAST_RANGE

    @property
    def centres(self) -> Array:
        found: Array = self.low + (np.arange(BINS) + 0.5) * ((self.high - self.low) / BINS)
        return found


@dataclass(frozen=True)
class Statistics:
    """Of each group of points."""

    ranges: dict[str, Range]
    histograms: dict[str, Histogram]
    samples: int


def observe(simulator: Simulator, samples: Iterable[dict[str, Array]], say: Say) -> Statistics:
    """Two passes over the samples: one for ranges, one for histograms within them."""
    selection = simulator.selection
    ranges = {group: Range() for group in selection.groups.values()}
    levels = {group: Levels() for group in ranges}
    number = 0
    for number, sample in enumerate(samples, 1):
        say(f"calibrating: ranges, sample {number}")
        for group, array in _points(selection, sample, simulator.run(sample)):
            ranges[group].add(array)
            levels[group].add(array)
    histograms = {group: Histogram(*each.with_zero, exact=levels[group].scale)
                  for group, each in ranges.items()}
    for again, sample in enumerate(samples, 1):
        say(f"calibrating: histograms, sample {again} of {number}")
        for group, array in _points(selection, sample, simulator.run(sample)):
            histograms[group].add(array)
    return Statistics(ranges, histograms, number)


def _points(selection: Selection, sample: dict[str, Array],
            values: dict[str, Array]) -> Iterable[tuple[str, Array]]:
    for point, group in selection.groups.items():
        array = selection.graph.array(point)
        if array is None:
            array = sample[point] if point in sample else values[point]
        if not np.isfinite(array).all():
            raise MicrotronError(f"{show_name(point)} has numbers that are not finite, with "
                                 f"samples that are; keep the layers that read it in float")
        yield group, array
