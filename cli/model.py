"""Commands for whole networks, and what the commands for programs do with a network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import MicrotronError
from .files import (
    AsJson,
    check_report,
    check_table,
    dump_passes,
    name_beside,
    say,
    write_inspections,
    write_table,
)
from .objects import check_objects, write_network, write_network_objects
from .options import (
    Limit,
    Memory,
    ModelBatch,
    ModelConfig,
    ModelInputs,
    ModelShapes,
    ModelStates,
    ModelValues,
    ReportFile,
    TableFile,
)
from .quantization import Preprocess, RandomData, SampleData, quantized_graph
from .times import (
    AllReasons,
    ClockMhz,
    OnBoard,
    board_and_memory,
    clock_of,
    host_timer,
    measure_here,
)

if TYPE_CHECKING:
    from ..compiler.graph.graph import Graph
    from ..isa.memory_timing import MemoryTiming
    from ..runtime.models.model import Model

PARTS = ("graph", "passes", "placement", "plan")

ModelFile = Annotated[Path, typer.Argument(
    metavar="MODEL", help="A network: a .tflite or .onnx file, or a model image (.mt).")]


def compile_(
        model: Annotated[Path, typer.Argument(
            metavar="MODEL", help="A network: a .tflite or .onnx file.")],
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Image to write. [default: MODEL with .mt; none with --show]",
        )] = None,
        name: ModelConfig = "",
        shapes: ModelShapes = None,
        values: ModelValues = None,
        states: ModelStates = None,
        batch: ModelBatch = 1,
        data: SampleData = None,
        random_data: RandomData = False,
        preprocess: Preprocess = "",
        require_accelerator: Annotated[bool, typer.Option(
            "--require-accelerator", help="Fail if any layer falls back to the CPU.")] = False,
        show: Annotated[str, typer.Option(
            metavar="PART,…", help=f"What to print: {', '.join(PARTS)}.")] = "",
        cpu: Annotated[str, typer.Option(
            metavar="PROCESSOR", help="Processor for --emit-objects: x86-64, aarch64, armv7-neon, "
                                      "rv32imac or rv32im.")] = "",
        objects: Annotated[Path | None, typer.Option(
            "--emit-objects", metavar="DIR", help="Folder for object files, C tables and a header "
                                                  "for that processor.")] = None,
        force: Annotated[bool, typer.Option(
            "--force", help="With --emit-objects: overwrite files that microtron did not write.",
        )] = False,
        memory: Memory = "",
        report: ReportFile = None,
        schedules: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Schedules that microtron tune found for this network and "
                                 "configuration, or the name of some that come with Microtron, "
                                 "as resnet8_slim.")] = None,
        dump: Annotated[Path | None, typer.Option(
            "--dump-passes", metavar="DIR", help="Folder for the graph after each pass, as ONNX "
                                                 "files that Netron shows.")] = None,
        as_json: AsJson = False) -> None:
    """Compile a network into a model image.

    Example: microtron compile model.onnx -o model.mt --config base

    Example: microtron compile model.onnx -o model.mt --dump-passes passes
    """
    check_objects(cpu, objects)
    check_report(report)
    fixed = ModelInputs(shapes, values, data, random_data, preprocess, states, batch)
    parts = [part for part in show.split(",") if part]
    for part in parts:
        if part not in PARTS:
            raise MicrotronError(f"--show: there is no {part!r}; there are {', '.join(PARTS)}")
    if is_model(model) and model.suffix == ".mt":
        if objects is None or dump is not None:
            raise MicrotronError(f"{model} was compiled already; microtron inspect shows it")
        write_network(open_model(model, name, fixed, memory), cpu, objects, force=force,
                      as_json=as_json)
        return
    _check_is_file_of_model(model)
    from ..base.atomic_files import check_folder
    from ..base.progress import report_progress
    target = output or (None if parts else name_beside(model, ".mt"))
    if target is not None:
        check_folder(target)
    with dump_passes(dump, silent=as_json) as graphs:
        compiled = _compile(model, name, fixed, memory, require_accelerator=require_accelerator,
                            schedules=schedules,
                            observe=lambda label, graph: graphs.append((label, graph)))
    if target is not None:
        with report_progress(f"saving {target}"):
            compiled.save(target)
    if report is not None:
        from ..runtime.reports.layers import inspect_model
        write_inspections({model.name: inspect_model(compiled, time_host=measure_here)}, report,
                          silent=as_json)
    if as_json:
        from ..runtime.reports.layers import inspect_model
        written = [] if objects is None else write_network_objects(
            compiled, cpu, objects, force=force)
        typer.echo(json.dumps({"image": str(target) if target else None, "objects": written,
                               **inspect_model(compiled).to_dict()}))
        return
    if objects is not None:
        write_network(compiled, cpu, objects, force=force)
    if parts:
        _show_parts(parts, graphs, compiled)
    if target is not None:
        hosted = len(compiled.host_nodes)
        count = len(compiled.programs)
        why = f"; for the reasons, microtron inspect {target}" if hosted else ""
        say(f"{target}: {count} program{'s' * (count != 1)}; {hosted} of {len(compiled.nodes)} "
            f"nodes run on the CPU{why}")


def inspect(model: ModelFile,
            name: ModelConfig = "",
            shapes: ModelShapes = None,
            values: ModelValues = None,
            states: ModelStates = None,
            batch: ModelBatch = 1,
            data: SampleData = None,
            random_data: RandomData = False,
            preprocess: Preprocess = "",
            memory: Memory = "",
            limit: Limit = None,
            board: OnBoard = "",
            mhz: ClockMhz = None,
            all_reasons: AllReasons = False,
            report: ReportFile = None,
            table: TableFile = None,
            as_json: AsJson = False) -> None:
    """Show the cost of a network, layer by layer.

    Where each layer runs and why, its MACs, exact cycles, bytes and time. Layers overlap: one has
    the cycles from the end of those before it to its own end. CPU times are measured on this
    machine or, with --board, estimated for the board's processor.

    Example: microtron inspect model.onnx --config base
    """
    check_report(report)
    check_table(table)
    chosen, memory = board_and_memory(board, memory)
    if chosen is not None and not name and not is_image_of_model(model):
        name = chosen.preset
    fixed = ModelInputs(shapes, values, data, random_data, preprocess, states, batch)
    loaded = open_model(model, name, fixed, memory)
    clock = clock_of(mhz, chosen, loaded.config)        # before minutes of simulation
    from ..base.progress import report_progress
    from ..runtime.reports.layers import inspect_model

    with report_progress("simulating") as tell:
        found = inspect_model(loaded, timing_of(memory), limit=limit, clock=clock,
                              time_host=host_timer(chosen, clock), progress=tell)
    if report is not None:
        write_inspections({model.name: found}, report, silent=as_json)
    from ..runtime.reports.model_tables import layer_rows, show_layers
    write_table(table, layer_rows(found), silent=as_json)
    if as_json:
        typer.echo(json.dumps({"file": str(model), **found.to_dict()}))
        return
    show_layers(str(model), found, all_reasons=all_reasons)


def is_model(path: Path) -> bool:
    """Whether a file is a network and not a program, as far as its name and first bytes tell."""
    from ..isa.image.program_image import first_section
    return path.suffix in (".tflite", ".onnx") or first_section(path) == "model"


def is_image_of_model(path: Path) -> bool:
    """Whether a file holds a network that was compiled already."""
    from ..runtime.models.model_image import holds_model
    return holds_model(path)


def open_model(path: Path, config: str, fixed: ModelInputs, memory: str) -> Model:
    """The model in an image, or the one that is compiled from a file."""
    from ..runtime.models.model import load_model

    if is_image_of_model(path):
        check_unused(config, fixed, f"{path} was compiled already")
        return load_model(path)
    _check_is_file_of_model(path)
    return _compile(path, config, fixed, memory)


def check_unused(config: str, fixed: ModelInputs, reason: str) -> None:
    """Refuse options for model files where there is none."""
    for option, given in (("--config", config), ("--shape", fixed.shapes),
                          ("--value", fixed.values), ("--state", fixed.states),
                          ("--data", fixed.data is not None),
                          ("--random-data", fixed.random_data),
                          ("--preprocess", fixed.preprocess), ("--batch", fixed.batch != 1)):
        if given:
            raise MicrotronError(f"{option} is for .tflite and .onnx files; {reason}")


def check_readable(path: Path) -> None:
    """Refuse a file that is not there, before anything is said about its content. A pipe is not
    waited for."""
    try:
        open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)).close()
    except (OSError, ValueError) as error:      # the last: a path with a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise MicrotronError(f"{path}: cannot be read: {reason}") from None


def _check_is_file_of_model(path: Path) -> None:
    if path.suffix == ".mt":
        check_readable(path)
        raise MicrotronError(f"{path}: not a network but an image of a program, or none; networks "
                             f"are .tflite and .onnx files and images that microtron compile wrote")


def _compile(path: Path, config: str, fixed: ModelInputs, memory: str, *,
             require_accelerator: bool = False, schedules: Path | None = None,
             observe: Callable[[str, Graph], None] | None = None) -> Model:
    from .. import compile as compiled
    from ..base.progress import report_progress

    given = None
    if schedules is not None:
        from ..explore.schedule_files import find_schedules, read_schedules
        from ..isa.config_files import load_config
        given = read_schedules(find_schedules(schedules), load_config(config or "base"))
    with report_progress(f"reading {path}") as tell:
        if fixed.quantizes:
            return compiled(quantized_graph(path, fixed, tell), config or "base",
                            memory=timing_of(memory), states=fixed.state_pairs(),
                            batch=fixed.batch, progress=tell, schedules=given,
                            require_accelerator=require_accelerator, observe=observe)
        return compiled(path, config or "base", memory=timing_of(memory), **fixed.parse(),
                        states=fixed.state_pairs(), batch=fixed.batch, progress=tell,
                        schedules=given,
                        require_accelerator=require_accelerator, observe=observe)


def timing_of(memory: str) -> MemoryTiming | None:
    """How memory behaves, as the option has it; None unless given."""
    from ..isa.memory_timing import parse_timing
    return parse_timing(memory) if memory else None


def _show_parts(parts: list[str], graphs: list[tuple[str, Graph]], model: Model) -> None:
    from ..runtime.reports.model_tables import placement_lines, plan_lines

    shown: dict[str, Iterable[str]] = {
        "graph": graphs[0][1].lines() if graphs else (),
        "passes": (line for label, graph in graphs[1:]
                   for line in (f"after {label}: {len(graph.nodes)} nodes",
                                *(f"    {each}" for each in graph.lines()))),
        "placement": placement_lines(model), "plan": plan_lines(model)}
    for number, part in enumerate(part for part in PARTS if part in parts):
        say(("\n" if number else "") + "\n".join([f"{part}:", *shown[part]]))
