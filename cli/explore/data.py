"""The commands that collect measurements: `dataset` and `records`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.errors import MicrotronError
from ..files import AsJson, say

if TYPE_CHECKING:
    from ...compiler.operators.description import Description
    from ...explore.dataset import Design

MOST_SEED = (1 << 32) - 1       # that all generators of random numbers take
StoreFile = Annotated[Path | None, typer.Option(
    "--records", metavar="FILE", help="Store of measurements: nothing in it is measured again. "
                                      "[default: the output with .records]")]
Budget = Annotated[str, typer.Option(
    metavar="POINTS,MIN", help="Stop after so many points, minutes or both: 5000, 30min or "
                               "5000,30min.")]
Seed = Annotated[int, typer.Option(
    min=0, max=MOST_SEED, help="Another seed draws other samples.")]
Workers = Annotated[int, typer.Option(
    min=1, max=256, help="Processes that measure: a local Dask cluster if there are several.")]
Scheduler = Annotated[str | None, typer.Option(
    metavar="ADDRESS", help="Use the workers of a Dask scheduler: tcp://host:8786.")]
OnDevice = Annotated[str, typer.Option(
    "--device", metavar="DEVICE", help="Measure layers on rtl or board:NAME@ADDRESS, or, with a "
                                       "scheduler, on workers that have board:NAME.")]

SCHEDULES, DESIGN = 4, "sobol"  # unless others are given


def dataset(
        output: Annotated[Path, typer.Argument(
            metavar="OUTPUT", help="Table to write: .parquet, .csv or .jsonl.")],
        networks: Annotated[list[Path] | None, typer.Option(
            "--network", metavar="MODEL", help="Take the layers of a .tflite or .onnx file; may be "
                                               "given several times.")] = None,
        lists: Annotated[list[Path] | None, typer.Option(
            "--layers", metavar="FILE", help="Take the layers of a JSON file; may be given several "
                                             "times.")] = None,
        random_layers: Annotated[int, typer.Option(
            min=0, max=100_000, help="Sample so many layers. [default: 256 unless others are "
                                     "given]", show_default=False)] = 0,
        configs: Annotated[list[str] | None, typer.Option(
            "--config", help="Take a preset or a .toml file; may be given several times.")] = None,
        random_configs: Annotated[int, typer.Option(
            min=0, max=100_000, help="Sample so many configurations. [default: 256 unless others "
                                     "are given]", show_default=False)] = 0,
        schedules: Annotated[int, typer.Option(
            min=1, max=10_000, help="Schedules of each layer on each configuration.",
        )] = SCHEDULES,
        memories: Annotated[int, typer.Option(
            min=1, max=1000, help="Memories for each schedule: the reference system, and samples.",
        )] = 1,
        design: Annotated[str, typer.Option(
            help="How samples are drawn: sobol or lhs (Latin hypercube).")] = DESIGN,
        areas: Annotated[list[str] | None, typer.Option(
            "--area", metavar="FAMILY", help="Synthesize configurations for ecp5 or xc7 instead of "
                                             "simulating layers on them; may be given several "
                                             "times.")] = None,
        clock: Annotated[str | None, typer.Option(
            "--clock", metavar="FAMILY", help="Place and route configurations for ecp5 instead: "
                                              "minutes to hours for each.")] = None,
        seeds: Annotated[int, typer.Option(
            min=1, max=100, help="With --clock: seeds of nextpnr for each configuration.")] = 1,
        budget: Budget = "5000",
        seed: Seed = 0,
        store: StoreFile = None,
        workers: Workers = 1,
        scheduler: Scheduler = None,
        device: OnDevice = "",
        as_json: AsJson = False) -> None:
    """Measure layers, areas or clocks for cost models.

    Every row is an exact simulation of a layer on a configuration with a schedule and a memory.
    Measurements are added to a store as they are made: a run that was stopped goes on where it
    was, and a larger budget measures the rest only.

    Example: microtron dataset data.parquet --budget 500,10min
    """
    from ...base.atomic_files import check_folder
    from ...base.progress import report_progress
    from ...explore.dataset import collect, parse_budget, rows_of
    from ...explore.distributed.pool import open_pool
    from ...explore.measure import check_device
    from ...runtime.reports.table_files import check_ending, write_rows
    from .hardware_data import Request, measure_areas, measure_clocks

    check_ending(output)
    check_folder(output)
    points, seconds = parse_budget(budget)
    records = store or output.with_suffix(".records")
    if areas or clock is not None:
        if areas and clock is not None:
            raise MicrotronError("--area and --clock are two tables: leave out one of them")
        _refuse_options("--area synthesizes" if areas is not None else "--clock routes", {
            "--network": networks, "--layers": lists, "--random-layers": random_layers,
            "--schedules": schedules != SCHEDULES, "--memories": memories != 1,
            "--workers": workers != 1, "--scheduler": scheduler, "--device": device,
            **({} if areas is None else {"--design": design != DESIGN, "--seed": seed != 0,
                                         "--seeds": seeds != 1})})
        asked = Request(output, records, configs or [], random_configs, points, seconds, as_json)
        if clock is None:
            measure_areas(asked, areas or [])
        else:
            measure_clocks(asked, clock, seeds, design, seed)
        return
    if seeds != 1:
        raise MicrotronError("--seeds is of --clock: leave it out")
    with report_progress("drawing samples") as tell:
        chosen = _design(networks, lists, random_layers, configs, random_configs, schedules,
                         memories, design, seed, check_device(device))
        limit = f" of {points}" if points else ""
        with open_pool(workers, scheduler, chosen.device) as pool:
            done = collect(chosen, records, points=points, seconds=seconds, pool=pool,
                           tell=lambda now: tell(f"measuring{limit}: {now}{now.left(points)}"))
        tell(f"writing {output}")
        rows = list(rows_of(chosen, records, points))
        if not rows:
            raise MicrotronError("no point could be measured: every layer is too large for these "
                                 "configurations, or takes too long")
        write_rows(output, rows)
    found = {"file": str(output), "records": str(records), "rows": len(rows),
             "configurations": len({row["configuration"] for row in rows}),
             "layers": len({row["layer"] for row in rows}), "measured": done.measured,
             "seconds": round(done.seconds, 1)}
    if as_json:
        typer.echo(json.dumps(found))
    else:
        say(f"{output}: {found['rows']} rows of {found['configurations']} configurations and "
            f"{found['layers']} layers; {done.measured} measured now in {done.seconds:.0f} s")


def _refuse_options(who: str, given: Mapping[str, object]) -> None:
    """Refuse options that measurements of configurations alone would not heed."""
    names = [name for name, value in given.items() if value]
    if names:
        raise MicrotronError(f"{who} configurations: leave out {', '.join(names)}")


def _design(networks: list[Path] | None, lists: list[Path] | None, random_layers: int,
            configs: list[str] | None, random_configs: int, schedules: int, memories: int,
            design: str, seed: int, device: str) -> Design:
    from ...explore.dataset import Design
    from ...explore.layer_sources import distinct, layers_of_network, read_layers, sample_layers
    from ...explore.sampling import sample_configs, sample_memories
    from ...isa.config import Config
    from ...isa.config_files import load_config

    named = {load_config(each): each for each in configs or []}
    layers: list[Description] = []
    for path in lists or []:
        layers += read_layers(path)
    for path in networks or []:
        layers += layers_of_network(path, next(iter(named), Config()))
    sampled = random_layers or (0 if layers else 256)
    layers += sample_layers(sampled, seed, design) if sampled else []
    drawn = random_configs or (0 if named else 256)
    return Design(configs=[*named, *(sample_configs(drawn, seed, design) if drawn else [])],
                  layers=distinct(layers), memories=sample_memories(memories, seed, design),
                  schedules=schedules, seed=seed, names=named, device=device)


def records(
        store: Annotated[Path, typer.Argument(metavar="STORE", help="A store of measurements.")],
        source: Annotated[Path | None, typer.Option(
            "--import", metavar="FILE", help="Add the records of a file of JSON lines.")] = None,
        target: Annotated[Path | None, typer.Option(
            "--export", metavar="FILE", help="Write all records as JSON lines.")] = None,
        as_json: AsJson = False) -> None:
    """Show what a store of measurements holds; exchange records.

    Valid records were measured by the compiler and the simulator as they are, stale ones by
    others; foreign ones are of something that this version does not have.

    Example: microtron records data.records --export data.jsonl
    """
    from ...base.progress import report_progress
    from ...explore.exchange import export_records, import_records
    from ...explore.records import Records, State

    if source is None and not store.exists():
        raise MicrotronError(f"{store}: cannot be read: no such file")
    with report_progress(f"reading {store}"), Records(store) as opened:
        new = import_records(opened, source)[1] if source is not None else 0
        if target is not None:
            export_records(opened, target)
        states = [each.state for each in opened]
    counts = {state.value: states.count(state) for state in State}
    if as_json:
        typer.echo(json.dumps({"file": str(store), "records": len(states), "new": new, **counts}))
    else:
        listed = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
        say(f"{store}: {len(states)} records{f': {listed}' if listed else ''}"
            f"{f'; {new} of them new' if source is not None else ''}")
