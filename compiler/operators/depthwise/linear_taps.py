"""Which pixels a bilinear enlargement averages, with whole weights."""

from __future__ import annotations

from math import gcd

import numpy as np

from ....base.classes.dataclass import dataclass
from ..packing import Array

LARGEST_UNIT = 127          # the sum of an average's weights: one may have it all, in 8 bits


@dataclass(frozen=True)
class AxisTaps:
    """The pixels that each index of a result averages along an axis: the one at `below`, and the
    next. Both weights are whole numbers, whose sum is `unit`."""

    below: Array
    lower: Array
    upper: Array
    unit: int


def axis_taps(size: int, factor: int, *, centred: bool) -> AxisTaps:
    """Taps along an axis that becomes `factor` times as long. Pixels lie in the centre of what they
    become, or else at its beginning; what lies outside belongs to the first or the last pixel."""
    unit = 2 * factor if centred else factor
    index = np.arange(size * factor, dtype=np.int64)
    places = 2 * index + 1 - factor if centred else index           # in units of a pixel
    unit_shared = gcd(unit, *np.unique(np.clip(places, 0, (size - 1) * unit)).tolist())
    places = np.clip(places, 0, (size - 1) * unit) // unit_shared
    unit //= unit_shared
    below = np.clip(places // unit, 0, max(size - 2, 0))
    upper = places - below * unit
    return AxisTaps(below, unit - upper, upper, unit)
