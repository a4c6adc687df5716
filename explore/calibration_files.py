"""Calibration in a file: a table, or a plot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.errors import MicrotronError
from ..base.notebooks.svg_plot import Series, plot_svg
from ..runtime.reports.table_files import write_rows

FORMATS = (".csv", ".svg", ".png")
Bins = Sequence[Mapping[str, object]]


def check_calibration(path: Path | None) -> None:
    """Refuse a file that cannot be written, before minutes of fitting."""
    if path is None:
        return
    if path.suffix not in FORMATS:
        raise MicrotronError(f"{path} must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if path.suffix == ".png":
        try:
            import matplotlib  # noqa: F401    # is it there?
        except ImportError:
            raise MicrotronError(f"{path}: .png needs matplotlib, which is not installed; write "
                                 f".svg") from None


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
    predicted, low, middle, high = (
        [float(str(each[name])) for each in bins]
        for name in ("predicted", "ratio_10", "ratio_50", "ratio_90"))
    return plot_svg([Series("10 % to 90 %", predicted, low, "band", high),
                     Series("median", predicted, middle, "line")],
                    x="predicted cycles", y="exact / predicted", log_x=True, level=1.0,
                    title="Configurations and layers held out")


def _draw_png(bins: Bins) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    predicted = [each["predicted"] for each in bins]
    axes.fill_between(predicted, [each["ratio_10"] for each in bins],
                      [each["ratio_90"] for each in bins], alpha=0.3, label="10 % to 90 %")
    axes.plot(predicted, [each["ratio_50"] for each in bins], marker="o", label="median")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="predicted cycles", ylabel="exact / predicted",
             title="Configurations and layers held out")
    axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()
