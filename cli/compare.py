"""The command that compares the hardware with the cycle-exact simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .files import ProgramFile, say
from .model import check_unused, is_image_of_model, is_model, open_model
from .networks import name_program
from .options import Limit, Memory, ModelInputs, ModelShapes, ModelStates, ModelValues

if TYPE_CHECKING:
    from ..isa.memory_timing import MemoryTiming
    from ..isa.program import Program

DIFFERENT = 1


def compare(program: ProgramFile,
            memory: Memory = "",
            name: Annotated[str, typer.Option(
                "--config", help="Configuration to compile a .tflite or .onnx file for; else "
                                 "another one with the same tiles and scratchpads. A preset or a "
                                 ".toml file.")] = "",
            shapes: ModelShapes = None,
            values: ModelValues = None,
            states: ModelStates = None,
            limit: Limit = None) -> None:
    """Compare the RTL with the simulator, cycle by cycle.

    Compares start and end of every instruction, counters, memory and faults. If anything differs,
    it shows the first such cycle with the state of both, and exits with 1. A network is compared
    program by program. Needs the extra `hw` and Verilator.

    Example: microtron compare matmul.mt --memory read_latency=64
    """
    programs, timing = _programs(program, memory, name, ModelInputs(shapes, values, states=states))
    other = name if not is_model(program) or is_image_of_model(program) else ""
    same = [_compare_one(program, number, len(programs), each, timing, other, limit,
                         is_file=not is_model(program))
            for number, each in enumerate(programs)]
    if not all(same):
        raise typer.Exit(DIFFERENT)


def _programs(path: Path, memory: str, name: str,
              fixed: ModelInputs) -> tuple[tuple[Program, ...], MemoryTiming]:
    """The programs in a file, and the memory that they run with."""
    from ..isa.memory_timing import parse_timing
    from ..isa.program_files import load_program

    if not is_model(path):
        check_unused("", fixed, f"{path} is a program")
        return (load_program(path),), parse_timing(memory)
    config = "" if is_image_of_model(path) else name
    model = open_model(path, config, fixed, memory)
    return model.programs, parse_timing(memory) if memory else model.memory


def _compare_one(path: Path, number: int, count: int, program: Program, timing: MemoryTiming,
                 other: str, limit: int | None, *, is_file: bool) -> bool:
    """Whether one program does the same on both; prints what there is to say."""
    from ..base.progress import report_progress
    from ..isa.config_files import load_config
    from ..sim.limit import cycle_limit
    from ..testing.compare import compare as run_both
    from ..testing.differences import describe_agreement, explain, save_case

    config = load_config(other) if other else program.config
    with report_progress(f"comparing program {number + 1} of {count}"):
        found = run_both(program, config=config, timing=timing,
                         limit=cycle_limit(program, timing, limit, config))
    if not found.differences:
        say(describe_agreement(name_program(path, number, count), found))
        return True
    place = path
    if other or not is_file:        # `run` takes a program's own accelerator, and whole networks
        place = path.with_name(f"{path.stem}-{number + 1}-{found.case.program.config.digest}.mt" if
                               not is_file else
                               f"{path.stem}-{found.case.program.config.digest}.mt")
        save_case(found, place)
    say(explain(found, place))
    return False
