"""The roofline of a network's layers, for plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...base.notebooks.svg_plot import Series
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming

LIMITS = {"macs": "limited by the MAC array", "memory": "limited by memory",
          "alu": "limited by the ALU"}
X, Y = "multiply-adds per byte", "multiply-adds per cycle"


class RooflinePoint(NamedTuple):
    """A layer."""

    name: str
    limit: str
    per_byte: float
    per_cycle: float


def roofline_series(layers: Sequence[RooflinePoint], config: Config,
                    memory: MemoryTiming) -> list[Series]:
    """What array and bus allow, and layers by what limits them."""
    peak, rate = config.macs_per_cycle, config.bus_bytes / memory.cycles_per_beat
    ends = [peak / rate, *(each.per_byte for each in layers)]
    xs = sorted({min(ends) / 2, peak / rate, max(ends) * 2})
    found = [Series("roof", xs, [min(peak, x * rate) for x in xs], "line")]
    for limit, title in LIMITS.items():
        some = [each for each in layers if each.limit == limit]
        if some:
            found.append(Series(title, [each.per_byte for each in some],
                                [each.per_cycle for each in some],
                                labels=[each.name for each in some]))
    return found
