"""Plots through matplotlib, where it is installed: the series of svg_plot on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import MicrotronError
from .svg_plot import COLOURS, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "os^Dv*"


def has_matplotlib() -> bool:
    from importlib.util import find_spec
    return find_spec("matplotlib") is not None


def plot_axes(series: Sequence[Series], *, x: str, y: str, title: str = "", log_x: bool = False,
              log_y: bool = False, level: float | None = None, axes: Axes | None = None) -> Axes:
    """Draw what `plot_svg` draws on axes of matplotlib: those given, or new ones."""
    if not has_matplotlib():
        raise MicrotronError("plots on axes need matplotlib, which is not installed: pip install "
                             "matplotlib")
    found = _new_axes() if axes is None else axes
    for number, each in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        if each.kind == "band":
            found.fill_between(each.xs, each.ys, each.tops, alpha=0.3, color=colour,
                               label=each.name)
        elif each.kind == "dots":
            found.plot(each.xs, each.ys, MARKS[number % len(MARKS)], color=colour, label=each.name)
        else:
            steps = "steps-post" if each.kind == "steps" else "default"
            found.plot(each.xs, each.ys, drawstyle=steps, color=colour, label=each.name)
    if level is not None:
        found.axhline(level, color="grey", linewidth=0.8, linestyle="--")
    found.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear", xlabel=x,
              ylabel=y, title=title)
    found.legend()
    return found


def _new_axes() -> Axes:
    """Of a figure that no window belongs to; a notebook shows it all the same."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    found: Axes = figure.subplots()
    return found
