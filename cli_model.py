"""Commands for whole networks, and what the commands for programs do with a network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cli_files import AsJson, check_apart, write_text
from .cli_objects import check_objects, write_network, written_objects
from .cli_options import Limit, Memory, ModelConfig, ModelInputs, ModelShapes, ModelValues
from .isa.errors import MicrotronError

if TYPE_CHECKING:
    from .boards.facts.board import Board
    from .compiler.graph.graph import Graph
    from .compiler.graph.types import TensorType
    from .isa.atomic import Content
    from .isa.verifier import Verdict
    from .runtime.model import Model
    from .runtime.profile import Profile

PARTS = ("graph", "passes", "placement", "plan")
REAL = ("float32", "float64", "float16")        # what stands for integers with a scale

ModelFile = Annotated[Path, typer.Argument(
    metavar="MODEL", help="A network: a .tflite or .onnx file, or a model image (.mt).")]


def compile_(
        model: Annotated[Path, typer.Argument(
            metavar="MODEL", help="A network: a .tflite or .onnx file.")],
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="Image to write; unless given, the model with .mt, or none with "
                                   "--show.")] = None,
        name: ModelConfig = "",
        shapes: ModelShapes = None,
        values: ModelValues = None,
        require_accelerator: Annotated[bool, typer.Option(
            "--require-accelerator", help="Refuse a network of which the CPU would have to "
                                          "compute something.")] = False,
        show: Annotated[str, typer.Option(
            metavar="PART,…", help=f"What to print: {', '.join(PARTS)}.")] = "",
        cpu: Annotated[str, typer.Option(
            metavar="PROCESSOR", help="The board's processor, for --emit-objects: x86-64, aarch64, "
                                      "armv7-neon, rv32imac or rv32im.")] = "",
        objects: Annotated[Path | None, typer.Option(
            "--emit-objects", metavar="DIR", help="Write the network for that processor into a "
                                                  "folder: object files, C tables, a header.")
            ] = None,
        memory: Memory = "",
        as_json: AsJson = False) -> None:
    """Compile a network into a model image, for the other commands and for runtimes.

    Example: microtron compile model.tflite -o model.mt --config base
    """
    check_objects(cpu, objects)
    fixed = ModelInputs(shapes, values)
    parts = [part for part in show.split(",") if part]
    for part in parts:
        if part not in PARTS:
            raise MicrotronError(f"--show: there is no {part!r}; there are {', '.join(PARTS)}")
    if is_model(model) and model.suffix == ".mt":
        if objects is None:
            raise MicrotronError(f"{model} was compiled already; microtron inspect shows it")
        write_network(opened(model, name, fixed, memory), cpu, objects, as_json=as_json)
        return
    _check_is_file_of_model(model)
    graphs: list[tuple[str, Graph]] = []
    compiled = _compiled(model, name, fixed, memory, require_accelerator=require_accelerator,
                         observe=lambda label, graph: graphs.append((label, graph)))
    target = output or (None if parts else model.with_suffix(".mt"))
    if target is not None:
        compiled.save(target)
    if as_json:
        from .runtime.layers import inspected
        written = [] if objects is None else written_objects(compiled, cpu, objects)
        typer.echo(json.dumps({"image": str(target) if target else None, "objects": written,
                               **inspected(compiled).to_dict()}))
        return
    if objects is not None:
        write_network(compiled, cpu, objects)
    if parts:
        _show_parts(parts, graphs, compiled)
    if target is not None:
        hosted = len(compiled.host_nodes)
        count = len(compiled.programs)
        typer.echo(f"{target}: {count} program{'s' * (count != 1)}; the CPU computes {hosted} of "
                   f"{len(compiled.nodes)} nodes"
                   f"{f': microtron inspect {target} says why' if hosted else ''}")


def inspect(model: ModelFile,
            name: ModelConfig = "",
            shapes: ModelShapes = None,
            values: ModelValues = None,
            memory: Memory = "",
            limit: Limit = None,
            as_csv: Annotated[bool, typer.Option(
                "--csv", help="Print a line for each node, for spreadsheets.")] = False,
            as_json: AsJson = False) -> None:
    """Print the layers of a network: where each runs and why, its work, cycles and traffic.

    A layer's cycles are those from the end of the layers before it to its own end.
    Example: microtron inspect model.tflite --config base
    """
    if as_json and as_csv:
        raise MicrotronError("--json and --csv are two ways to print the same; take one")
    loaded = opened(model, name, ModelInputs(shapes, values), memory)
    from .isa.progress import watched
    from .runtime.layers import inspected

    with watched("simulating"):
        found = inspected(loaded, _timing(memory), limit=limit)
    if as_json:
        typer.echo(json.dumps({"file": str(model), **found.to_dict()}))
        return
    from .runtime.model_tables import csv_text, show_layers
    if as_csv:
        write_text(csv_text(found))
    else:
        show_layers(str(model), found)


def is_model(path: Path) -> bool:
    """Whether a file is a network and not a program, as far as its name and first bytes tell."""
    from .isa.image import first_section
    return path.suffix in (".tflite", ".onnx") or first_section(path) == "model"


def opened(path: Path, config: str, fixed: ModelInputs, memory: str) -> Model:
    """The model in an image, or the one that is compiled from a file."""
    from .runtime.model import load_model
    from .runtime.model_image import holds_model

    if holds_model(path):
        check_unused(config, fixed, f"{path} was compiled already")
        return load_model(path)
    _check_is_file_of_model(path)
    return _compiled(path, config, fixed, memory)


def check_unused(config: str, fixed: ModelInputs, reason: str) -> None:
    """Refuse options for model files where there is none."""
    for option, given in (("--config", config), ("--shape", fixed.shapes),
                          ("--value", fixed.values)):
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


def _compiled(path: Path, config: str, fixed: ModelInputs, memory: str,
              **options: Any) -> Model:
    from . import compile as compiled
    from .isa.progress import watched

    with watched(f"reading {path}") as say:
        return compiled(path, config or "base", memory=_timing(memory), **fixed.parsed(),
                        progress=say, **options)


def _timing(memory: str) -> Any:
    from .isa.timing import parse_timing
    return parse_timing(memory) if memory else None


def _show_parts(parts: list[str], graphs: list[tuple[str, Graph]], model: Model) -> None:
    from .runtime.model_tables import placement_lines, plan_lines

    shown: dict[str, Iterable[str]] = {
        "graph": graphs[0][1].lines() if graphs else (),
        "passes": (line for label, graph in graphs[1:]
                   for line in (f"after {label}: {len(graph.nodes)} nodes",
                                *(f"    {each}" for each in graph.lines()))),
        "placement": placement_lines(model), "plan": plan_lines(model)}
    for number, part in enumerate(part for part in PARTS if part in parts):
        typer.echo(("\n" if number else "") + "\n".join([f"{part}:", *shown[part]]))


def run_model(path: Path, *, device: str, options: dict[str, Any], inputs: list[str] | None,
              outputs: list[str] | None, trace: Path | None, config: str,
              fixed: ModelInputs, memory: str, check: bool, as_json: bool) -> None:
    """What `microtron run` does with a network."""
    from .isa.atomic import write_together
    from .isa.progress import watched
    from .isa.verifier import verify
    from .runtime.files import array_content
    from .runtime.model_tables import show_result
    from .runtime.trace import format_for, trace_content

    model = opened(path, config, fixed, memory)
    wanted = files_of("--output", outputs, model.outputs)
    check_apart((*wanted.values(), trace))
    if (trace is not None or "waveform" in options) and len(model.programs) != 1:
        raise MicrotronError(f"--trace and --waveform show one program, but {path} has "
                             f"{len(model.programs)}")
    if trace is not None:
        format_for(trace)
    given = {name: read_input(file, name, model.inputs[name])
             for name, file in files_of("--input", inputs, model.inputs).items()}
    with watched("verifying") as say:
        for program in model.programs if check else ():
            verify(program)
        say("running")
        result = model.run(given, device, **options)
    files: dict[Path, Content] = {file: array_content(result[name])
                                  for name, file in wanted.items()}
    if trace is not None:
        files[trace] = trace_content(trace, model.programs[0], result.reports[0])
    write_together(files)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        show_result(f"{path} on {device}", model, result)


def read_input(path: Path, name: str, type_: TensorType) -> Any:
    from .isa.values import named
    from .runtime.files import read_array
    dtypes = (type_.dtype, *(REAL if type_.is_quantized else ()))
    return read_array(path, f"input {named(name)}", type_.shape, dtypes)


def files_of(option: str, given: list[str] | None, types: Any) -> dict[str, Path]:
    """Files of tensors: x=x.npy, or x.npy if there is only one tensor. Names have any character."""
    from .isa.values import listed, named
    found: dict[str, Path] = {}
    for each in given or []:
        fitting = [name for name in types if each.startswith(f"{name}=")]
        name = max(fitting, key=len) if fitting else next(iter(types)) if len(types) == 1 else ""
        file = each[len(name) + 1:] if fitting else each
        if not file or name not in types or (not fitting and not each.endswith(".npy")):
            example = next(iter(types), "x")
            raise MicrotronError(f"{option} {named(each)} must be a tensor and a file, as in "
                                 f"{named(example)}={option.strip('-')}.npy; the model has "
                                 f"{listed([named(name) for name in types])}")
        if name in found:
            raise MicrotronError(f"{option} names the tensor {named(name)} twice")
        found[name] = Path(file)
    return found


def profile_model(path: Path, *, memory: str, limit: int | None, config: str,
                  fixed: ModelInputs, board: Board | None, as_json: bool) -> None:
    """What `microtron profile` does with a network: a profile of each program."""
    from .isa.progress import watched
    from .runtime.profile import profile

    model = opened(path, config, fixed, memory)
    if board is not None:
        from .boards.facts.fit import check_fits
        check_fits(board, model.config)         # before minutes of simulation
    timing = _timing(memory) or model.memory
    with watched("simulating"):
        found = [profile(program, timing, limit=limit) for program in model.programs]
    places = [_numbered(path, number, len(found)) for number in range(len(found))]
    show_profiles(places, found, board, as_json=as_json, together=True)


def show_profiles(places: list[str], found: list[Profile], board: Board | None, *, as_json: bool,
                  together: bool = False) -> None:
    """Profiles for people, or as one JSON object; with a board also the time that each takes."""
    from .runtime.tables import show_profile

    times: list[dict[str, Any]] = [{}] * len(found)
    if board is not None:
        from .boards.facts.speed import speed_of

        speeds = [speed_of(board, each.report.config) for each in found]
        times = [{"board": board.name, "mhz": speed.mhz,
                  "milliseconds": speed.milliseconds(each.report.cycles or 0)}
                 for speed, each in zip(speeds, found, strict=True)]
    if as_json:
        dictionaries = [{**each.to_dict(), **more}
                        for each, more in zip(found, times, strict=True)]
        typer.echo(json.dumps({"programs": dictionaries} if together else dictionaries[0]))
        return
    for place, each, more in zip(places, found, times, strict=True):
        time = "{milliseconds:,.3f} ms at {mhz:g} MHz on {board}".format(**more) if more else None
        show_profile(place, each, time)


def _numbered(path: Path, number: int, count: int) -> str:
    return f"{path}, program {number + 1} of {count}" if count > 1 else str(path)


def verdicts_of_model(path: Path, config: str,
                      fixed: ModelInputs) -> list[tuple[str, Verdict]]:
    """What `microtron verify` says about each program of a network."""
    from .isa.progress import watched
    from .isa.verifier import inspect as judge

    model = opened(path, config, fixed, "")
    with watched("verifying"):
        return [(_numbered(path, number, len(model.programs)), judge(program))
                for number, program in enumerate(model.programs)]


def disassembled_model(path: Path, config: str, fixed: ModelInputs) -> str:
    """What `microtron disasm` prints for a network: its programs, one after the other."""
    from .isa.disassembly import disassemble

    model = opened(path, config, fixed, "")
    texts = [disassemble(program) for program in model.programs]
    if len(texts) == 1:
        return texts[0]
    return "".join(f"; program {number} of {len(texts)}\n{text}"
                   for number, text in enumerate(texts, 1))
