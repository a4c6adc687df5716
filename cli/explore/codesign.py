"""The command that searches configurations for networks on a board."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ..files import AsJson, check_report, check_table, say, write_table
from ..options import ReportFile, TableFile
from .data import Budget, Scheduler, Seed, Workers

if TYPE_CHECKING:
    from ...explore.codesign.codesign_search import Exploration
    from ...explore.codesign.front import Point
    from ...explore.codesign.question import Question

OBJECTIVES = "latency,lut,dsp"


def explore(
        models: Annotated[list[Path], typer.Argument(
            metavar="MODEL…", help="Networks: .tflite or .onnx files, or .json lists of layers. "
                                    "Their cycles are added up.")],
        board: Annotated[str, typer.Option(
            "--board", help="The board whose part and memory count.")],
        output: Annotated[Path, typer.Option(
            "--output", "-o", help="Folder for the front: front.csv, front.svg, exploration.json "
                                   "and a configuration for each point.")] = Path("front"),
        objective: Annotated[str, typer.Option(
            metavar="NAME,…", help="What is to be small: latency and any of lut, register, dsp, "
                                   "bram.")] = OBJECTIVES,
        weights: Annotated[str, typer.Option(
            metavar="NUMBER,…", help="A weight for each network. [default: 1 for all]")] = "",
        baseline: Annotated[str | None, typer.Option(
            metavar="CONFIG", help="A preset or a .toml file to compare with.")] = None,
        finalists: Annotated[int, typer.Option(
            min=1, max=1000, help="Configurations to compile and simulate exactly.")] = 24,
        refine: Annotated[int, typer.Option(
            min=0, max=1000, help="Exact simulations of neighbours: of the baseline, if there is "
                                  "one, and of the knee.")] = 0,
        route: Annotated[int, typer.Option(
            min=0, max=1000, help="Points to build for the board, the knee first: placed and "
                                  "routed, minutes to hours each.")] = 0,
        cost_model: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Cost model of microtron fit, instead of the estimate.")] = None,
        area_model: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Area model of microtron fit, instead of the one that comes with "
                                 "Microtron.")] = None,
        budget: Budget = "256",
        seed: Seed = 0,
        store: Annotated[Path | None, typer.Option(
            "--records", metavar="FILE", help="Store of measurements: nothing in it is simulated "
                                              "again. [default: in the folder]")] = None,
        study: Annotated[str | None, typer.Option(
            metavar="URL", help="Storage of Optuna, as sqlite:///study.db, that several searchers "
                                "share; give each a --seed of its own.")] = None,
        workers: Workers = 1,
        scheduler: Scheduler = None,
        report: ReportFile = None,
        table: TableFile = None,
        as_json: AsJson = False) -> None:
    """Search configurations for networks on a board.

    NSGA-II ranks configurations by predicted cycles and area; those that do not fit the part, and
    those that are worse even at their bound, are rejected at once. The predicted front is compiled
    and simulated exactly. Each point of the result is a file that microtron build takes.

    Example: microtron explore examples/digits/digits.onnx --board ulx3s --budget 64
    """
    from ...base.progress import print_note, report_progress
    from ...explore.codesign.built_points import check_route, route_points
    from ...explore.codesign.codesign_search import Exploration, finish, measure_baseline, search
    from ...explore.codesign.front import knee_of
    from ...explore.codesign.front_files import (
        name_of_knee,
        rows_of,
        write_front,
    )
    from ...explore.codesign.refinement import climb, starts_of
    from ...explore.codesign.study import import_optuna
    from ...explore.dataset import parse_budget
    from ...explore.distributed.pool import open_pool
    from ...explore.records import Records
    from ...isa.config_files import load_config
    from ..model import check_readable

    import_optuna()
    trials, seconds = parse_budget(budget)
    if output.exists() and not output.is_dir():
        raise MicrotronError(f"--output is {output}, but must be a folder, or a name for one")
    check_report(report)
    check_table(table)
    for path in models:
        check_readable(path)
    reference = load_config(baseline) if baseline is not None else None
    until = None if seconds is None else time.monotonic() + seconds
    with report_progress("reading networks") as tell:
        question = ask(models, board, objective, weights, cost_model, area_model, seed)
        if route:
            check_route(question.budget.board)
        found = Exploration(question)
        mhz = question.budget.board.clock.compute_hz / 1e6
        _make_folder(output)
        with (Records(store or output / "exploration.records") as records,
              open_pool(workers, scheduler) as pool):
            before = None
            if reference is not None:
                tell(f"simulating {baseline}")
                before = measure_baseline(found, reference, records)
            search(found, trials=trials, until=until, tell=tell, pool=pool, storage=study)
            finish(found, records, finalists=finalists, until=until, tell=tell, pool=pool,
                   show=lambda now: write_front(output, now, mhz))
            climb(found, starts_of(before, knee_of(found.front)), records, count=refine,
                  until=until, tell=tell, show=lambda now: write_front(output, now, mhz))
    if not found.front:
        raise MicrotronError(f"no configuration fits {board}: {_reasons(found) or 'no trials'}")
    route_points(found, route, output, until=until, tell=print_note,
                 show=lambda now: write_front(output, now, mhz))
    gains = [] if before is None else describe_gains(found, before)
    if report is not None:
        from .front_report import write_front_report
        write_front_report(report, models, found,
                           None if before is None else (str(baseline), before), silent=as_json)
    write_table(table, rows_of(found, mhz), silent=as_json)
    if as_json:
        typer.echo(json.dumps(_facts(found, output, before, gains)))
        return
    _show(found, mhz)
    say(f"rejected: {_reasons(found)}" if found.rejected else "nothing was rejected")
    for line in (*gains, *_routed_lines(found)):
        say(line)
    if knee := name_of_knee(found.front):
        say(f"knee of cycles and LUTs: {knee}")
    say(f"{output}: {len(found.front)} configurations, of {found.trials} trials and "
        f"{len(found.exact)} exact simulations")


def ask(models: list[Path], board: str, objective: str = OBJECTIVES, weights: str = "",
        cost_model: Path | None = None, area_model: Path | None = None,
        seed: int = 0) -> Question:
    """What is searched, as options say it."""
    from ...boards.facts.catalogue import find_board
    from ...explore.area.area_model import load_area_model, shipped_area_model
    from ...explore.codesign.board_budget import Budget as BoardBudget
    from ...explore.codesign.question import Question
    from ...explore.codesign.workload import read_tasks
    from ...explore.predictor import load_cost_model
    from ...isa.config import PRESETS
    from ...isa.memory_timing import MemoryTiming

    target = find_board(board)
    areas = shipped_area_model() if area_model is None else load_area_model(area_model)
    limits = BoardBudget(target, areas)
    question = Question(tasks=(), budget=limits, memory=target.memory.timing or MemoryTiming(),
                        objectives=tuple(objective.split(",")), seed=seed,
                        model=None if cost_model is None else load_cost_model(cost_model))
    tasks = read_tasks(models, _weights(weights), PRESETS[target.preset], question.memory)
    return Question(tasks=tasks, budget=limits, memory=question.memory, model=question.model,
                    objectives=question.objectives, seed=seed)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicrotronError(f"--output is {path}, which cannot be made a folder: "
                             f"{error.strerror}") from None


def _weights(text: str) -> list[float]:
    try:
        found = [float(each) for each in text.split(",")] if text else []
    except ValueError:
        found = [0.0]
    if not all(0 < each < 1e9 for each in found):
        raise MicrotronError(f"weights are {quote(text)}, but must be positive numbers, as in "
                             f"1,0.5")
    return found


def describe_gains(found: Exploration, before: Point) -> list[str]:
    """What the front has over a baseline, at no more LUTs and at no more cycles."""
    luts = before.area["lut"]
    lines = [f"baseline: {before.cycles:,.0f} cycles, {luts:,.0f} LUTs, "
             f"{before.area['dsp']:,.0f} multipliers"]
    faster = [point for point in found.front
              if point.area["lut"] <= luts and point.cycles < before.cycles]
    smaller = [point for point in found.front
               if point.cycles <= before.cycles and point.area["lut"] < luts]
    if faster:
        cycles = min(point.cycles for point in faster)
        lines.append(f"at no more LUTs: {cycles:,.0f} cycles, "
                     f"{100 * (1 - cycles / before.cycles):.1f} % less")
    if smaller:
        least = min(point.area["lut"] for point in smaller)
        lines.append(f"at no more cycles: {least:,.0f} LUTs, {100 * (1 - least / luts):.1f} % less")
    return lines if len(lines) > 1 else [*lines, "nothing on the front beats it"]


def _reasons(found: Exploration) -> str:
    return "; ".join(f"{count} {reason} (as {found.examples[reason]})"
                     for reason, count in found.rejected.most_common())


def _routed_lines(found: Exploration) -> Iterator[str]:
    """What became of the points that were built."""
    from ...explore.codesign.front_files import name_points

    for name, point in name_points(found.front):
        routed = found.routed.get(point.config)
        if routed is None:
            continue
        if routed.error:
            yield f"{name} was not routed: {routed.error}"
        elif not routed.runs_mhz:
            yield f"{name} was routed for {routed.mhz:.1f} MHz, which is less than its board needs"
        else:
            yield (f"{name} was routed for {routed.mhz:.1f} MHz and runs at {routed.runs_mhz:g}: "
                   f"{point.cycles / routed.runs_mhz / 1000:.3f} ms, {routed.used['lut']:,.0f} "
                   f"LUTs; {routed.folder}")


def _facts(found: Exploration, output: Path, before: Point | None,
           gains: list[str]) -> dict[str, object]:
    from ...explore.codesign.front_files import name_of_knee

    return {"folder": str(output), "trials": found.trials, "predicted": len(found.predicted),
            "exact": len(found.exact), "rejected": dict(found.rejected),
            "examples": found.examples, "gains": gains, "knee": name_of_knee(found.front),
            "baseline": None if before is None else {"cycles": before.cycles, **before.area},
            "front": [{"config": point.config.explicit_fields(), "cycles": point.cycles,
                       **point.area, **_routed(found, point)} for point in found.front]}


def _routed(found: Exploration, point: Point) -> dict[str, object]:
    routed = found.routed.get(point.config)
    return {} if routed is None else {"routed": routed.to_dict()}


def _show(found: Exploration, mhz: float) -> None:
    from rich.table import Table

    from ...runtime.reports.tables import open_console

    table = Table(title=f"Pareto front, exact cycles; milliseconds at {mhz:g} MHz",
                  title_justify="left")
    for name in ("point", "array", "lanes", "banks", "bus", "cycles", "ms", "LUT", "DSP", "BRAM"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, point in enumerate(found.front, 1):
        config, area = point.config, point.area
        table.add_row(f"{number:02d}", f"{config.batch}×{config.block_in}×{config.block_out}",
                      f"{config.alu_lanes}", f"{config.acc_banks}", f"{config.bus_bits}",
                      f"{point.cycles:,.0f}", f"{point.cycles / mhz / 1000:.3f}",
                      *(f"{area[kind]:,.0f}" for kind in ("lut", "dsp", "bram")))
    open_console().print(table)
