"""Calibration in a file: a table, or a plot where matplotlib is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.errors import MicrotronError
from .data_files import write_rows

PLOTS = (".png", ".svg")
Bins = Sequence[Mapping[str, object]]


def check_calibration(path: Path | None) -> None:
    """Refuse a file that cannot be written, before minutes of fitting."""
    if path is None or path.suffix == ".csv":
        return
    if path.suffix not in PLOTS:
        raise MicrotronError(f"{path} must end with .csv, {' or '.join(PLOTS)}")
    try:
        import matplotlib  # noqa: F401    # is it there?
    except ImportError:
        raise MicrotronError(f"{path}: plots need matplotlib, which is not installed; write .csv"
                             ) from None


def write_calibration(path: Path, bins: Bins) -> None:
    """Write how exact cycles relate to predicted ones, in bins."""
    if path.suffix == ".csv":
        write_rows(path, bins)
        return
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
    figure.savefig(content, format=path.suffix[1:])
    write_atomically(path, content.getvalue())
