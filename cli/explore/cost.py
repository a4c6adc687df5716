"""The command that fits cost models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.errors import MicrotronError
from ..files import AsJson, check_report, check_table, say, write_table
from ..options import ReportFile, TableFile
from .data import Seed

if TYPE_CHECKING:
    from ...explore.fit import Fit
    from ...explore.validation import Errors, HeldOut

FOLDS = 5
COLUMNS = ("held out", "predicted by", "rows", "Spearman", "median error", "90 %", "99 %")


def fit(data: Annotated[list[Path], typer.Argument(
            metavar="DATA…", help="Data sets of `microtron dataset`.")],
        output: Annotated[Path, typer.Option(
            "--output", "-o", help="Cost model to write, a .json file of XGBoost; beside it goes "
                                   "a .schema.json.")] = Path("cost_model.json"),
        count: Annotated[int | None, typer.Option(
            "--folds", min=2, max=50, help="Folds of the cross-validation. [default: 5; for "
                                           "clocks, each configuration alone]",
            show_default=False)] = None,
        seed: Seed = 0,
        calibration: Annotated[Path | None, typer.Option(
            help="Write exact against predicted cycles: a .csv, an .svg, or a .png where "
                 "matplotlib is installed.")] = None,
        report: ReportFile = None,
        table: TableFile = None,
        as_json: AsJson = False) -> None:
    """Fit a model of cycles, of area or of clocks to data sets.

    Gradient-boosted trees correct a coarse simulation of a schedule's steps. Cross-validation
    holds out whole configurations, whole layers, and both at once; beside the model's errors are
    those of this simulation alone, of the analytic estimate and of a roofline.

    Example: microtron fit data.parquet -o cost_model.json
    """
    if output.suffix != ".json":
        raise MicrotronError(f"--output is {output}, but must be a .json file")
    check_report(report)
    check_table(table)
    from ...base.atomic_files import check_folder
    from ...base.progress import report_progress
    from ...explore.calibration_files import check_calibration, write_calibration
    from ...explore.data_files import is_table_of
    from ...explore.fit import fit as fit_model
    from ...explore.fit import load_data
    from ...explore.points import AREA, CLOCK
    from ...explore.predictor import import_xgboost

    check_folder(output)
    kind = next((each for each in (AREA, CLOCK) if is_table_of(each, data[0])), None)
    if kind is not None:
        if calibration is not None or report is not None:
            raise MicrotronError(f"--calibration and --report are of cycles: leave them out for "
                                 f"tables of {kind}s")
        (_fit_area if kind == AREA else _fit_clock)(data, output, count, seed, table,
                                                    as_json=as_json)
        return
    import_xgboost()
    check_calibration(calibration)
    with report_progress("reading") as tell:
        found = fit_model(load_data(data, tell), count=count or FOLDS, seed=seed, tell=tell)
        found.predictor.save(output)
        if calibration is not None:
            write_calibration(calibration, found.calibration)
    if report is not None:
        write_fit_report(report, output, found, silent=as_json)
    facts = found.predictor.facts
    write_table(table, [{"held_out": held_out.value, "predicted_by": name, **each.to_dict()}
                        for held_out, kinds in found.errors.items()
                        for name, each in kinds.items()], silent=as_json)
    if as_json:
        typer.echo(json.dumps({"file": str(output), **facts}))
        return
    _show(found)
    say(f"{output}: {facts['rows']} rows of {facts['configurations']} configurations and "
        f"{facts['layers']} layers")


def write_fit_report(target: Path, output: Path, found: Fit, *, silent: bool) -> None:
    """The errors of a cost model, and its calibration as a plot."""
    from ...explore.calibration_files import PREDICTED, RATIO, TITLE, calibration_series
    from ...report.extra_plot import ExtraPlot
    from ...report.extra_table import ExtraTable
    from ...report.save_report import write_report

    rows = [(held_out.value, *cells) for held_out, cells in _rows(found)]
    write_report({}, target, f"cost model {output.name}", [ExtraTable(
        title="Errors", about="Predicted against exact cycles, by cross-validation; bars are "
        "median errors.", columns=COLUMNS, rows=rows,
        bars=[each.median for kinds in found.errors.values() for each in kinds.values()])],
        [ExtraPlot(title="Calibration", about=f"{TITLE}: at 1, predictions are right.",
                   x=PREDICTED, y=RATIO, log_x=True, level=1.0,
                   series=calibration_series(found.calibration))])
    if not silent:
        say(f"{target}: a report on the cost model; open it in a browser")


def _rows(found: Fit) -> Iterator[tuple[HeldOut, list[str]]]:
    """What was held out, and the cells of a line after it."""
    for held_out, kinds in found.errors.items():
        for name, each in kinds.items():
            yield held_out, [name, *_cells(each)]


def _cells(each: Errors) -> list[str]:
    return [str(each.rows), f"{each.spearman:.4f}", *(f"{100 * value:.1f} %" for value in (
        each.median, each.percentile_90, each.percentile_99))]


def _fit_area(data: list[Path], output: Path, folds: int | None, seed: int, target: Path | None,
              *, as_json: bool) -> None:
    """Fit an area model, and show what it leaves on held-out configurations."""
    from ...base.progress import report_progress
    from ...explore.area.area_model import fit_area, read_areas

    with report_progress("fitting areas"):
        rows = read_areas(data)
        model = fit_area(rows, folds or FOLDS, seed)
    model.save(output)
    _show_errors("Predicted against synthesized area", "resource", model.errors, output,
                 len(rows), target, as_json=as_json)


def _fit_clock(data: list[Path], output: Path, folds: int | None, seed: int, target: Path | None,
               *, as_json: bool) -> None:
    """Fit a clock model, and show how good it is beside simpler ones."""
    from ...base.progress import report_progress
    from ...explore.clock.clock_model import fit_clock, read_clocks

    with report_progress("fitting clocks"):
        rows = read_clocks(data)
        model = fit_clock(rows, folds, seed)
    model.save(output)
    _show_errors("Predicted against routed period", "predicted by", model.errors, output,
                 len(rows), target, as_json=as_json)
    for doubt in model.doubts():
        if not as_json:
            say(doubt)


def _show_errors(title: str, what: str,
                 errors: Mapping[str, Mapping[str, Mapping[str, float | None]]], output: Path,
                 number: int, target: Path | None, *, as_json: bool) -> None:
    """A line for each family and each `what`."""
    from rich.table import Table

    from ...runtime.reports.tables import open_console

    write_table(target, [{"family": family, what.replace(" ", "_"): name, **each}
                         for family, names in errors.items() for name, each in names.items()],
                silent=as_json)
    if as_json:
        typer.echo(json.dumps({"file": str(output), "rows": number,
                               "errors": errors}))
        return
    table = Table(title=title, title_justify="left")
    for name in ("family", what, "rows", "Spearman", "median error", "90 %"):
        table.add_column(name, justify="left" if name in ("family", what) else "right")
    for family, names in errors.items():
        for name, each in names.items():
            rank = each["spearman"]
            table.add_row(family, name, f"{each['rows']}", "–" if rank is None else f"{rank:.4f}",
                          f"{100 * (each['median'] or 0):.1f} %",
                          f"{100 * (each['percentile_90'] or 0):.1f} %")
    open_console().print(table)
    say(f"{output}: {number} rows; configurations were held out")


def _show(found: Fit) -> None:
    """Errors in a table, a line for each kind of prediction and of what was held out."""
    from rich.table import Table

    from ...runtime.reports.tables import open_console

    table = Table(title="Predicted against exact cycles", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in COLUMNS[:2] else "right")
    for held_out, cells in _rows(found):
        table.add_row(held_out.value, *cells)
    for name, each in found.operators.items():
        table.add_row("both", f"cost model, {name}", *_cells(each))
    open_console().print(table)
