"""Calibration in a file: a table, or a plot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.errors import MicrotronError
from ..base.notebooks.figure import has_matplotlib, plot_axes
from ..base.notebooks.svg_plot import Series, plot_svg
from ..runtime.reports.table_files import write_rows

PREDICTED, RATIO = "predicted cycles", "exact / predicted"
TITLE = "Configurations and layers held out"
FORMATS = (".csv", ".svg", ".png")
Bins = Sequence[Mapping[str, object]]


def check_calibration(path: Path | None) -> None:
    """Refuse a file that cannot be written, before minutes of fitting."""
    if path is None:
        return
    if path.suffix not in FORMATS:
        raise MicrotronError(f"{path} must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if path.suffix == ".png" and not has_matplotlib():
        raise MicrotronError(f"{path}: .png needs matplotlib, which is not installed; write "
                             f".svg")


def write_calibration(path: Path, bins: Bins) -> None:
    """Write how exact cycles relate to predicted ones, in bins."""
    match path.suffix:
        case ".csv":
            write_rows(path, bins)
        case ".svg":
            write_atomically(path, plot_calibration(bins).encode())
        case _:
            write_atomically(path, _draw_png(bins))


def plot_calibration(bins: Bins) -> str:
    """The ratio of exact to predicted cycles over what was predicted, as SVG."""
    return plot_svg(calibration_series(bins), x=PREDICTED, y=RATIO, log_x=True, level=1.0,
                    title=TITLE)


def calibration_series(bins: Bins) -> list[Series]:
    """The same for any plot."""
    predicted, low, middle, high = (
        [float(str(each[name])) for each in bins]
        for name in ("predicted", "ratio_10", "ratio_50", "ratio_90"))
    return [Series("10 % to 90 %", predicted, low, "band", high),
            Series("median", predicted, middle, "line")]


def _draw_png(bins: Bins) -> bytes:
    axes = plot_axes(calibration_series(bins), x=PREDICTED, y=RATIO, log_x=True, level=1.0,
                     title=TITLE)
    content = io.BytesIO()
    axes.figure.savefig(content, format="png")
    return content.getvalue()
