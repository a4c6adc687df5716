"""Numbers that are whole multiples of a step, as those are that a sensor, a picture or an earlier
network stored in 8 bits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..parameters import HIGH, LOW, SMALLEST, Array, Scale

MOST_NUMBERS = 4 * (HIGH - LOW + 1)     # distinct ones; some may differ in their last bit only
LOOKED_AT = 4096                # of a large array, before all of it is sorted
SAME = 1e-5                     # of the largest number: a smaller difference is none
WHOLE = 1e-3                    # of a step, by which a number may miss a multiple


@dataclass
class Levels:
    """The distinct numbers that were seen of a tensor, while there are few; zero is one."""

    numbers: Array | None = field(default_factory=lambda: np.zeros(1, np.float32))

    def add(self, array: Array) -> None:
        values = array.reshape(-1)
        for part in (values[:LOOKED_AT], values[LOOKED_AT:]):
            if self.numbers is not None and part.size:
                found = _distinct(np.concatenate([self.numbers, part]))
                self.numbers = found if len(found) <= MOST_NUMBERS else None

    @property
    def scale(self) -> Scale | None:
        """The scale at which all of them are exact: their step, or the largest part of it at which
        they fit. What is left of 256 levels lies on both sides, if numbers do."""
        if self.numbers is None or len(self.numbers) < 2:
            return None
        numbers = self.numbers.astype(np.float64)
        apart = np.diff(numbers)
        step = apart[apart > SAME * np.abs(numbers).max()].min(initial=np.inf)
        counts = np.rint(numbers / step)
        if not np.isfinite(step) or counts.max() - counts.min() > HIGH - LOW:
            return None
        step = float(np.dot(numbers, counts) / np.dot(counts, counts))
        parts = int((HIGH - LOW) // (counts.max() - counts.min()))
        if np.abs(numbers / step - counts).max() > WHOLE or step < parts * SMALLEST:
            return None
        low, high = int(counts.min()) * parts, int(counts.max()) * parts
        left = HIGH - LOW - (high - low)
        first = low - (0 if low == 0 else left if high == 0 else left // 2)
        return Scale(float(np.float32(step / parts)), LOW - first)


def _distinct(values: Array) -> Array:
    ordered = np.sort(values)
    found: Array = ordered[np.append(True, np.diff(ordered) > 0)]
    return found
