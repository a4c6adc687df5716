"""The command that tunes networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.errors import MicrotronError
from ..files import AsJson, say
from ..options import Memory
from .data import Seed, StoreFile

if TYPE_CHECKING:
    from ...explore.tune import Tuned


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
        as_json: AsJson = False) -> None:
    """Search for faster schedules of a network.

    Layers are searched one by one with exact simulation; then the whole stream is simulated, and
    what makes it faster is kept. Measurements go to a store and are never repeated.

    Example: microtron tune model.tflite --config small -o model.schedules.json
    """
    from ...base.progress import report_progress
    from ...explore.predictor import load_cost_model
    from ...explore.schedule_files import write_schedules
    from ...explore.tune import TuneOptions, Tuner
    from ...isa.config_files import load_config
    from ...isa.memory_timing import MemoryTiming
    from ..model import check_readable, timing_of

    target = output or model.with_suffix(".schedules.json")
    if target.suffix != ".json":
        raise MicrotronError(f"--output is {target}, but must be a .json file")
    check_readable(model)
    config = load_config(name)
    options = TuneOptions(method=method, trials=trials, streams=streams, seed=seed,
                          model=None if cost_model is None else load_cost_model(cost_model))
    records = store or target.with_suffix(".records")
    with report_progress(f"reading {model}") as tell:
        found = Tuner(model, config, timing_of(memory) or MemoryTiming(), records, options,
                      tell).tune()
    facts = {"network": model.name, "before": found.before, "after": found.after}
    write_schedules(target, config, found.kept, facts)
    if as_json:
        typer.echo(json.dumps({"file": str(target), **facts, "kept": len(found.kept), "layers": [
            {"operator": each.layer.operator, "times": each.times, "before": each.before,
             "after": each.after, "trials": each.trials, "space": each.space}
            for each in found.layers]}))
        return
    _show(found)
    say(f"{target}: {len(found.kept)} schedules; {found.before} cycles before, {found.after} with "
        f"them: {100 * found.gain:.2f} % less")


def _show(found: Tuned) -> None:
    from rich.table import Table

    from ...runtime.reports.tables import open_console

    table = Table(title="Layers alone", title_justify="left")
    for title in ("layer", "times", "compiler", "tuned", "gain", "trials", "schedules"):
        table.add_column(title, justify="left" if title == "layer" else "right")
    for each in found.layers:
        table.add_row(each.layer.operator, str(each.times), f"{each.before:.0f}",
                      f"{each.after:.0f}", f"{100 * (1 - each.after / each.before):.1f} %",
                      str(each.trials), str(each.space))
    open_console().print(table)
