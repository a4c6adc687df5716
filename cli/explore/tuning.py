"""The command that tunes networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.errors import MicrotronError
from ..files import (
    AsJson,
    check_report,
    check_table,
    name_beside,
    say,
    write_inspections,
    write_table,
)
from ..options import Memory, ReportFile, TableFile
from .data import OnDevice, Scheduler, Seed, StoreFile, Workers

if TYPE_CHECKING:
    from ...explore.tune import Tuned, TunedLayer
    from ...isa.config import Config
    from ...isa.memory_timing import MemoryTiming

COLUMNS = ("layer", "times", "compiler", "tuned", "gain", "trials", "schedules")


def tune(
        model: Annotated[Path, typer.Argument(
            metavar="MODEL", help="A network: a .tflite or .onnx file.")],
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Schedules to write. [default: MODEL with .schedules.json]",
        )] = None,
        name: Annotated[str, typer.Option(
            "--config", help="A preset or a .toml file.")] = "base",
        memory: Memory = "",
        method: Annotated[str, typer.Option(
            help="How layers are searched: exhaustive, anneal, guided, or auto: exhaustive where "
                 "there are no more schedules than trials, guided elsewhere.")] = "auto",
        trials: Annotated[int, typer.Option(
            min=1, max=100_000, help="Schedules of each kind of layer to measure.")] = 64,
        streams: Annotated[int, typer.Option(
            min=1, max=1000, help="Whole networks to compile and simulate.")] = 8,
        cost_model: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Cost model of microtron fit, to begin with.")] = None,
        seed: Seed = 0,
        store: StoreFile = None,
        workers: Workers = 1,
        scheduler: Scheduler = None,
        device: OnDevice = "",
        report: ReportFile = None,
        table: TableFile = None,
        as_json: AsJson = False) -> None:
    """Search for faster schedules of a network.

    Layers are searched one by one with exact simulation; then the whole stream is simulated, and
    what makes it faster is kept. Measurements go to a store and are never repeated.

    Example: microtron tune model.onnx --config small -o model.schedules.json
    """
    from ...base.atomic_files import check_folder
    from ...base.progress import report_progress
    from ...explore.distributed.pool import open_pool
    from ...explore.measure import check_device
    from ...explore.predictor import load_cost_model
    from ...explore.records import Records
    from ...explore.schedule_files import write_schedules
    from ...explore.tune import TuneOptions, Tuner
    from ...isa.config_files import load_config
    from ...isa.memory_timing import MemoryTiming as Timing
    from ..model import check_readable, timing_of

    target = output or name_beside(model, ".schedules.json")
    if target.suffix != ".json":
        raise MicrotronError(f"--output is {target}, but must be a .json file")
    check_report(report)
    check_table(table)
    check_readable(model)
    config = load_config(name)
    options = TuneOptions(method=method, trials=trials, streams=streams, seed=seed,
                          device=check_device(device),
                          model=None if cost_model is None else load_cost_model(cost_model))
    check_folder(target)
    records = store or target.with_suffix(".records")
    with Records(records):              # says what is wrong with it before anything takes long
        pass
    with (report_progress(f"reading {model}") as tell,
          open_pool(workers, scheduler, options.device) as pool):
        found = Tuner(model, config, timing_of(memory) or Timing(), records, options, tell,
                      pool).tune()
    facts = {"network": model.name, "before": found.before, "after": found.after}
    write_schedules(target, config, found.kept, facts)
    if report is not None:
        _write_report(report, model, config, timing_of(memory), found, silent=as_json)
    layers = [{"operator": each.layer.operator, "times": each.times, "before": each.before,
               "after": each.after, "trials": each.trials, "space": each.space}
              for each in found.layers]
    write_table(table, layers, silent=as_json)
    if as_json:
        typer.echo(json.dumps({"file": str(target), **facts, "kept": len(found.kept),
                               "layers": layers}))
        return
    _show(found)
    say(f"{target}: {len(found.kept)} schedules; {found.before} cycles before, {found.after} with "
        f"them: {100 * found.gain:.2f} % less")


def _write_report(path: Path, model: Path, config: Config, memory: MemoryTiming | None,
                  found: Tuned, *, silent: bool) -> None:
    """The network before and after, side by side, and what was found for each layer."""
    from ... import compile as compile_model
    from ...base.progress import report_progress
    from ...report.extra_table import ExtraTable
    from ...runtime.reports.layers import inspect_model

    with report_progress("compiling for the report") as tell:
        kept = {layer: (each.form, each.knobs) for layer, each in found.kept.items()}
        runs = {name: inspect_model(compile_model(model, config, memory=memory, progress=tell,
                                                  schedules=schedules), memory, progress=tell)
                for name, schedules in (("before tuning", {}), ("tuned", kept))}
    table = ExtraTable(
        title="Layers alone", about="Cycles of each kind of layer by the compiler's choice and by "
        "the best schedule that was found; bars are what this would save if layers did not "
        "overlap. What makes the whole network faster was kept.",
        columns=COLUMNS, rows=[_cells(each) for each in found.layers],
        bars=[max(0.0, each.gain) for each in found.layers])
    write_inspections(runs, path, tables=[table], silent=silent)


def _cells(layer: TunedLayer) -> list[str]:
    return [layer.layer.operator, str(layer.times), f"{layer.before:.0f}", f"{layer.after:.0f}",
            f"{100 * (1 - layer.after / layer.before):.1f} %", str(layer.trials),
            str(layer.space)]


def _show(found: Tuned) -> None:
    from rich.table import Table

    from ...runtime.reports.tables import open_console

    table = Table(title="Layers alone", title_justify="left")
    for title in COLUMNS:
        table.add_column(title, justify="left" if title == "layer" else "right")
    for each in found.layers:
        table.add_row(*_cells(each))
    open_console().print(table)
