"""The command that writes reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .files import check_report, name_beside, write_inspections
from .model import check_unused, is_image_of_model, is_model, open_model, timing_of
from .options import Limit, Memory, ModelInputs, ModelShapes, ModelStates, ModelValues
from .quantization import Preprocess, RandomData, SampleData
from .times import ClockMhz, OnBoard, board_and_memory, clock_of, host_timer

if TYPE_CHECKING:
    from ..boards.facts.board import Board
    from ..report.save_report import Source
    from ..runtime.reports.layers import Inspection


def report(models: Annotated[list[Path], typer.Argument(
               metavar="MODEL...", help="Networks: .tflite, .onnx or model images (.mt); or "
                                        "programs. Several are compared.")],
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", help="File to write. [default: the first MODEL with .html]",
           )] = None,
           configs: Annotated[list[str] | None, typer.Option(
               "--config", help="Configuration to compile .tflite and .onnx files for: a preset or "
                                "a .toml file. Several are compared. [default: base]")] = None,
           shapes: ModelShapes = None,
           values: ModelValues = None,
           states: ModelStates = None,
           data: SampleData = None,
           random_data: RandomData = False,
           preprocess: Preprocess = "",
           memory: Memory = "",
           limit: Limit = None,
           board: OnBoard = "",
           mhz: ClockMhz = None) -> None:
    """Write a report as one HTML file, to look at in a browser.

    Summary, network, layers, roofline, a timeline to zoom from the whole network to one
    instruction, memory plan, scratchpads and traffic. It needs no network access.

    Example: microtron report model.onnx -o report.html

    Example: microtron report model.onnx --config base --config small -o comparison.html
    """
    target = output or name_beside(models[0], ".html")
    check_report(target)
    chosen, memory = board_and_memory(board, memory)
    fixed = ModelInputs(shapes, values, data, random_data, preprocess, states)
    found: dict[str, Inspection] = {}
    for path in models:
        is_file = is_model(path) and not is_image_of_model(path)
        names = (configs or [_preset(chosen)]) if is_file else [""]
        if not is_file and configs:
            check_unused(configs[0], fixed, f"{path} was compiled already")
        for name in names:
            title = path.name if len(names) == 1 else f"{path.name} ({name or 'base'})"
            found[_fresh(title, found)] = _inspect(path, name, fixed, memory, limit, chosen, mhz)
    write_inspections(found, target)


def _preset(board: Board | None) -> str:
    return "" if board is None else board.preset


def _inspect(path: Path, config: str, fixed: ModelInputs, memory: str, limit: int | None,
             board: Board | None, mhz: float | None) -> Inspection:
    from ..base.progress import report_progress
    from ..report.save_report import inspect_source

    source: Source
    if is_model(path):
        source = open_model(path, config, fixed, memory)
        clock = clock_of(mhz, board, source.config)
    else:
        from ..isa.program_files import load_program
        check_unused(config, fixed, f"{path} is a program")
        source = load_program(path)
        clock = clock_of(mhz, board, source.config)
    with report_progress("simulating") as tell:
        return inspect_source(source, path.name, timing_of(memory), clock=clock, limit=limit,
                              time_host=host_timer(board, clock), progress=tell)


def _fresh(name: str, taken: dict[str, Inspection]) -> str:
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name}, {number + 1}"
    return found
