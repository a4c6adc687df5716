"""A plot that only some sources have, such as the calibration of a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.checked_values import PlainData
from ..base.notebooks.svg_plot import Series


@dataclass(frozen=True, kw_only=True)
class ExtraPlot:
    """A section of its own: series over two axes. `level` is a value of y with a line of its
    own."""

    title: str
    about: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    level: float | None = None

    def to_dict(self) -> PlainData:
        return {"title": self.title, "about": self.about,
                "x": {"name": self.x, "log": self.log_x}, "y": {"name": self.y, "log": self.log_y},
                "level": self.level, "series": [_series(each) for each in self.series]}


def _series(series: Series) -> PlainData:
    tops = series.tops or series.ys
    labels = series.labels or [""] * len(series.xs)
    return {"name": series.name, "kind": series.kind, "points": [
        {"x": x, "y": y, "top": top, "label": label}
        for x, y, top, label in zip(series.xs, series.ys, tops, labels, strict=True)]}
