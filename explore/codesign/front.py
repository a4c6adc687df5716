"""A Pareto front, as people look at it in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

from ...base.notebooks.figure import plot_axes
from ...base.notebooks.html_table import html_table
from ...base.notebooks.svg_plot import Series, plot_svg
from ...isa.config import Config

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS = {"latency": "cycles", "lut": "LUTs", "register": "registers", "dsp": "multipliers",
         "bram": "block RAMs"}


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


@dataclass(frozen=True, kw_only=True)
class RoutedPoint:
    """What became of a point: a bitstream with its figures, or why there is none."""

    folder: str
    mhz: float = 0.0                        # that routing reached
    runs_mhz: float = 0.0                   # and that the accelerator runs at; 0 if it is too slow
    used: Mapping[str, float] = field(default_factory=dict)     # by kind of resource
    error: str = ""

    def to_dict(self) -> dict[str, object]:
        return {"folder": self.folder, "error": self.error} if self.error else {
            "folder": self.folder, "mhz": self.mhz, "runs_mhz": self.runs_mhz, **self.used}


class Front(list[Point]):
    """Points that no other one beats, the fastest first."""

    def __init__(self, points: Iterable[Point], objectives: Sequence[str]) -> None:
        super().__init__(points)
        self.objectives = tuple(objectives)

    def _repr_html_(self) -> str:
        """In a notebook: a table, and cycles over the first area that was an objective."""
        table = html_table(
            f"Pareto front of {len(self)} configurations",
            ("array", "lanes", "banks", "cycles", *(UNITS[kind] for kind in self._kinds)),
            [(f"{each.config.batch}×{each.config.block_in}×{each.config.block_out}",
              each.config.alu_lanes, each.config.acc_banks, f"{each.cycles:,.0f}",
              *(f"{each.area[kind]:,.0f}" for kind in self._kinds)) for each in self])
        if not self:
            return table
        return table + plot_svg(self._series(), x=UNITS[self._axis], y=UNITS["latency"],
                                title="Pareto front")

    def plot(self, axes: Axes | None = None) -> Axes:
        """The same picture on axes of matplotlib, which must be installed."""
        return plot_axes(self._series(), x=UNITS[self._axis], y=UNITS["latency"],
                         title="Pareto front", axes=axes)

    @property
    def _kinds(self) -> list[str]:
        return list(self[0].area) if self else []

    @property
    def _axis(self) -> str:
        return next((each for each in self.objectives if each != "latency"), "lut")

    def _series(self) -> list[Series]:
        """All points, and a line through those that none beats in the two axes."""
        pairs = [(each.area[self._axis], each.cycles) for each in self]
        best: list[tuple[float, float]] = []
        for pair in sorted(pairs):
            if not best or pair[1] < best[-1][1]:
                best.append(pair)
        return [Series("front", [x for x, _ in best], [y for _, y in best], "steps"),
                Series("configurations", [x for x, _ in pairs], [y for _, y in pairs],
                       labels=[f"{y:,.0f} cycles, {x:,.0f} {UNITS[self._axis]}"
                               for x, y in pairs])]


def pareto_front(points: Sequence[Point], objectives: Sequence[str]) -> Front:
    """Points that no other point equals or beats in all objectives, by latency."""
    found: list[Point] = []
    for point in sorted(points, key=lambda each: (each.values(objectives), each.config.digest)):
        if not any(dominates(other, point, objectives) for other in found):
            found.append(point)
    return Front(sorted(found, key=lambda each: each.cycles), objectives)


def dominates(one: Point, other: Point, objectives: Sequence[str]) -> bool:
    return all(mine <= theirs for mine, theirs in zip(
        one.values(objectives), other.values(objectives), strict=True))


def knee_of(points: Sequence[Point]) -> Point | None:
    """Where a front bends: in cycles and LUTs, the point that is farthest below the line between
    the two ends, on logarithmic scales of the same length. None if there are fewer than three."""
    line = pareto_front(points, ("latency", "lut"))
    if len(line) < 3:
        return None
    places = [(log(point.cycles), log(point.area["lut"])) for point in line]
    (first, most), (last, least) = places[0], places[-1]
    return min(zip(places, line, strict=True), key=lambda each: (
        (each[0][0] - first) / (last - first) + (each[0][1] - least) / (most - least)))[1]
