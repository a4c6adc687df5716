"""Commands that run programs on devices with a clock, or compare such devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import MicrotronError
from .files import (
    AsJson,
    ProgramFile,
    check_distinct,
    check_report,
    check_table,
    say,
    tensor_files,
    write_table,
    write_waveform_views,
)
from .firmware import is_image, run_image
from .frames import AllFrames, DeviceOptions, FrameOptions, RunOptions, StatesIn, StatesOut
from .model import check_unused, is_image_of_model, is_model, open_model
from .networks import (
    name_program,
    profile_model,
    run_model,
    show_profiles,
    write_program_report,
)
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
from .quantization import Preprocess, RandomData, SampleData
from .times import AllReasons, ClockMhz, OnBoard, board_and_memory, clock_of

if TYPE_CHECKING:
    from ..base.atomic_files import Content
    from ..isa.memory_timing import MemoryTiming
    from ..isa.program import Program

DIFFERENT = 1               # exit code of a comparison that finds something


def run(program: ProgramFile,
        device: Annotated[str, typer.Option(
            help="functional, cycle (exact timing), rtl (the Verilog under Verilator), or a board: "
                 "board:pynq_z2@/dev/uio0, board:ulx3s@/dev/ttyUSB0. [default: functional for a "
                 "program, cycle for a network]",
        )] = "",
        inputs: Annotated[list[str] | None, typer.Option(
            "--input", "-i", metavar="TENSOR=FILE.npy",
            help="Input tensor. A network also takes a .npz file with an array for each input; its "
                 "only input may be a file alone.",
        )] = None,
        outputs: Annotated[list[str] | None, typer.Option(
            "--output", "-o", metavar="TENSOR=FILE.npy", help="Output tensor to save.",
        )] = None,
        seed: Annotated[int | None, typer.Option(
            help="Functional device: interleave the engines adversarially, as tokens allow, from "
                 "this seed.")] = None,
        memory: Memory = "",
        trace: Annotated[Path | None, typer.Option(
            help="cycle or rtl: write the timeline of all instructions, .json for Perfetto or "
                 ".npz.")] = None,
        waveform: Annotated[Path | None, typer.Option(
            help="rtl: write all signals, .vcd or .fst.")] = None,
        limit: Limit = None,
        check: Annotated[bool, typer.Option(help="Verify programs first.")] = True,
        name: ModelConfig = "",
        shapes: ModelShapes = None,
        values: ModelValues = None,
        states: ModelStates = None,
        allow_nan: Annotated[bool, typer.Option(
            "--allow-nan", help="Accept inputs of a network that hold NaN.")] = False,
        all_frames: AllFrames = False,
        states_in: StatesIn = None,
        states_out: StatesOut = None,
        mhz: ClockMhz = None,
        all_reasons: AllReasons = False,
        report_file: ReportFile = None,
        table: TableFile = None,
        as_json: AsJson = False) -> None:
    """Run a network or a program on a simulator, the RTL or a board.

    Prints the answer and what the run took. A .bin file is firmware, and runs on a board's soft
    processor. A network with states runs on a sequence of inputs with --frames.

    Example: microtron run model.onnx -i image.npy

    Example: microtron run matmul.mt -i a=a.npy -o c=c.npy
    """
    fixed = ModelInputs(shapes, values, states=states)
    frames = FrameOptions(all_frames, states_in, states_out)
    check_report(report_file)
    check_table(table)
    if is_image(program):
        if report_file is not None:
            raise MicrotronError(f"--report is for networks and programs, but {program} is "
                                 f"firmware")
        check_unused(name, fixed, f"{program} was compiled already")
        if device:              # without one, that is what has to be said
            _options(device, seed=seed, memory=memory, trace=trace, waveform=waveform, limit=limit,
                     report=None)
        run_image(program, device=device, limit=limit, inputs=inputs, outputs=outputs,
                  allow_nan=allow_nan, table=table, as_json=as_json, frames=frames)
        return
    if is_model(program):
        device = device or "cycle"
        told: RunOptions = {**_options(device, seed=seed, memory=memory, trace=trace,
                                       waveform=waveform, limit=limit, report=report_file),
                            "allow_nan": allow_nan}
        run_model(program, device=device, options=told, inputs=inputs, outputs=outputs,
                  trace=trace, config=name, fixed=fixed, memory=memory, check=check,
                  mhz=mhz, all_reasons=all_reasons, as_json=as_json, frames=frames,
                  report=report_file, table=table)
        return
    _refuse_for_programs(program, mhz, all_reasons)
    check_unused(name, fixed, f"{program} is a program")
    frames.check_unused(f"{program} is a program")
    if allow_nan:
        raise MicrotronError(f"--allow-nan is for networks; {program} is a program, of integers")
    device = device or "functional"
    from ..base.atomic_files import write_together
    from ..isa.program_files import load_program
    from ..isa.verification.verifier import verify as prove
    from ..runtime.devices.device import check_outputs, open_device
    from ..runtime.devices.device import run as execute
    from ..runtime.models.tensor_files import array_content, read_tensor
    from ..runtime.reports.trace import format_for, trace_content

    loaded = load_program(program)
    wanted = tensor_files("--output", outputs)
    check_outputs(loaded, wanted)
    check_distinct((*wanted.values(), trace, waveform, report_file, table))
    if trace is not None:
        format_for(trace)
    given = {name: read_tensor(path, loaded.tensor(name))
             for name, path in tensor_files("--input", inputs).items()}
    options = _options(device, seed=seed, memory=memory, trace=trace, waveform=waveform,
                       limit=limit, report=report_file)
    chosen = open_device(device, loaded.config, **options)
    if check:
        prove(loaded)
    results, report = execute(loaded, given, chosen)
    files: dict[Path, Content] = {path: array_content(results[name])
                                  for name, path in wanted.items()}
    if trace is not None:
        files[trace] = trace_content(trace, loaded, report)
    write_together(files)
    write_waveform_views(waveform)
    if report_file is not None:
        write_program_report(program, loaded, report_file, memory=memory, limit=limit,
                             silent=as_json)
    write_table(table, [report.to_row()], silent=as_json)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        from ..runtime.reports.tables import report_rows, show
        show(f"{program} on {report.device}", report_rows(report))


def profile(program: ProgramFile,
            memory: Memory = "",
            limit: Limit = None,
            name: ModelConfig = "",
            shapes: ModelShapes = None,
            values: ModelValues = None,
            states: ModelStates = None,
            batch: ModelBatch = 1,
            data: SampleData = None,
            random_data: RandomData = False,
            preprocess: Preprocess = "",
            board: OnBoard = "",
            mhz: ClockMhz = None,
            all_reasons: AllReasons = False,
            report: ReportFile = None,
            table: TableFile = None,
            as_json: AsJson = False) -> None:
    """Show where the cycles go: engines, waits, roofline.

    A network is profiled program by program, and the time of an inference includes what runs on
    the CPU. Programs that cannot be proven safe are refused.

    Example: microtron profile matmul.mt --memory read_latency=64
    """
    fixed = ModelInputs(shapes, values, data, random_data, preprocess, states, batch)
    chosen, memory = board_and_memory(board, memory)
    check_report(report)
    check_table(table)
    if is_model(program):
        if chosen is not None and not is_image_of_model(program):
            name = name or chosen.preset
        profile_model(program, memory=memory, limit=limit, config=name, fixed=fixed,
                      board=chosen, mhz=mhz, all_reasons=all_reasons, as_json=as_json,
                      report=report, table=table)
        return
    _refuse_for_programs(program, None, all_reasons)
    check_unused(name, fixed, f"{program} is a program")
    from ..isa.memory_timing import parse_timing
    from ..isa.program_files import load_program
    from ..isa.verification.verifier import verify as prove
    from ..runtime.reports.profile import profile as measure

    loaded = load_program(program)
    clock = clock_of(mhz, chosen, loaded.config)        # before minutes of simulation
    prove(loaded)
    if report is not None:
        write_program_report(program, loaded, report, memory=memory, limit=limit, clock=clock,
                             silent=as_json)
    show_profiles([str(program)], [measure(loaded, parse_timing(memory), limit=limit)], clock,
                  table=table, as_json=as_json)


def _refuse_for_programs(program: Path, mhz: float | None, all_reasons: bool) -> None:
    for option, given in (("--clock", mhz is not None), ("--all", all_reasons)):
        if given:
            raise MicrotronError(f"{option} is for networks, but {program} is a program")


def _options(name: str, *, seed: int | None, memory: str, trace: Path | None,
             waveform: Path | None, limit: int | None, report: Path | None) -> DeviceOptions:
    """What the options of `run` mean to a device; one that it has no use for is refused."""
    from ..isa.memory_timing import parse_timing
    from ..sim.functional.order import Adversarial

    timed = ("cycle", "rtl")
    for option, given, owners in (("--seed", seed is not None, ("functional",)),
                                  ("--memory", memory != "", timed),
                                  ("--trace", trace is not None, timed),
                                  ("--report", report is not None, timed),
                                  ("--waveform", waveform is not None, ("rtl",))):
        if given and name not in owners:
            raise MicrotronError(f"{option} is for the {' or '.join(owners)} device, not for "
                                 f"{name}")
    options: DeviceOptions = {"limit": limit}
    if seed is not None:
        if seed < 0:
            raise MicrotronError(f"--seed is {seed}, but must not be negative")
        options["order"] = Adversarial(seed)
    if memory:
        options["memory"] = parse_timing(memory)
    if waveform is not None:
        options["waveform"] = waveform
    return options


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
