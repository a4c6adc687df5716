"""What the commands for programs do with a network: run, profile, verify, compare and print it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..base.errors import MicrotronError
from .files import check_distinct, write_inspections, write_table, write_waveform_views
from .frames import FrameOptions, RunOptions, run_frames
from .model import open_model, timing_of
from .tensors import output_files
from .times import clock_of, host_timer

if TYPE_CHECKING:
    from ..base.atomic_files import Content
    from ..base.checked_values import PlainData
    from ..boards.facts.board import Board
    from ..isa.memory_timing import MemoryTiming
    from ..isa.program import Program
    from ..isa.verification.verifier import Verdict
    from ..runtime.clock import Clock
    from ..runtime.models.model import Model
    from ..runtime.reports.profile import Profile
    from ..runtime.times.end_to_end import EndToEnd
    from .options import ModelInputs


def run_model(path: Path, *, device: str, options: RunOptions, inputs: list[str] | None,
              outputs: list[str] | None, trace: Path | None, config: str,
              fixed: ModelInputs, memory: str, check: bool, mhz: float | None,
              all_reasons: bool, as_json: bool, frames: FrameOptions,
              report: Path | None, table: Path | None) -> None:
    """What `microtron run` does with a network."""
    from ..base.atomic_files import write_together
    from ..base.progress import report_progress
    from ..runtime.models.tensor_files import array_content
    from ..runtime.reports.layers import end_to_end
    from ..runtime.reports.network_trace import check_trace, network_trace_content
    from ..runtime.reports.result_tables import show_result

    model = open_model(path, config, fixed, memory)
    wanted = output_files(outputs, model.outputs)
    kept = frames.files_out({name: each.type for name, each in model.states.items()})
    check_distinct((*wanted.values(), *kept.values(), trace, report, table))
    if frames.all_frames and (trace is not None or "waveform" in options):
        raise MicrotronError("--trace and --waveform show one frame, without --frames")
    if "waveform" in options and len(model.programs) != 1:
        raise MicrotronError(f"--waveform shows one program, but {path} has "
                             f"{len(model.programs)}")
    if trace is not None:
        check_trace(trace, model)
    clock = _clock_of_device(device, mhz, model)
    given = frames.read_frames(inputs, model.inputs)
    if check:
        check_safe(model)
    with report_progress(f"running on {device}") as tell:
        found_frames = run_frames(model, device, options, frames, given, tell)
    result = found_frames.last
    files: dict[Path, Content] = {
        **{file: array_content(found_frames.outputs[name]) for name, file in wanted.items()},
        **{file: array_content(found_frames.states[name]) for name, file in kept.items()}}
    time = end_to_end(model, result.cycles, clock, host_timer(None, clock))
    if trace is not None:
        files[trace] = network_trace_content(trace, model, result.reports, time)
    write_together(files)
    write_waveform_views(options.get("waveform"))
    if report is not None:
        _write_report(path, model, report, timing_of(memory), time, silent=as_json)
    found: PlainData = {**result.to_dict(), **time.to_dict(), "frames": given[0],
                        "cycles_of_all_frames": found_frames.cycles}
    seconds = {name: (each.seconds, each.source.value) for name, each in time.host.nodes.items()}
    for each in found["nodes"]:
        each["seconds"], each["time_source"] = seconds.get(each["name"], (None, ""))
    write_table(table, found["nodes"], silent=as_json)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        place = f"{path} on {device}"
        if frames.all_frames:
            cycles = found_frames.cycles
            place += f", the last of {given[0]:,} frames"
            place += f" in {cycles:,} cycles" if cycles is not None else ""
        show_result(place, model, result, time, all_reasons=all_reasons)


def _clock_of_device(device: str, mhz: float | None, model: Model) -> Clock:
    """The clock of a board that runs a network, or the one that was given."""
    board = None
    if mhz is None and device.startswith("board:"):
        from ..boards.facts.catalogue import board_names, find_board
        name = device.removeprefix("board:").partition("@")[0]
        board = find_board(name) if name in board_names() else None
    return clock_of(mhz, board, model.config)


def check_safe(model: Model) -> None:
    """Refuse a network of which a program cannot be proven safe."""
    from ..base.progress import report_progress
    from ..isa.verification.verifier import verify

    with report_progress("verifying") as tell:
        for number, program in enumerate(model.programs, 1):
            tell(f"verifying program {number} of {len(model.programs)}")
            verify(program)


def profile_model(path: Path, *, memory: str, limit: int | None, config: str,
                  fixed: ModelInputs, board: Board | None, mhz: float | None,
                  all_reasons: bool, as_json: bool, report: Path | None,
                  table: Path | None) -> None:
    """What `microtron profile` does with a network: a profile of each program, and the time of an
    inference."""
    from ..base.progress import report_progress
    from ..runtime.reports.layers import end_to_end
    from ..runtime.reports.profile import profile
    from ..runtime.reports.result_tables import show_end_to_end

    model = open_model(path, config, fixed, memory)
    clock = clock_of(mhz, board, model.config)      # before minutes of simulation
    check_safe(model)
    timing, count = timing_of(memory) or model.memory, len(model.programs)
    found: list[Profile] = []
    with report_progress("simulating") as tell:
        for number, program in enumerate(model.programs, 1):
            tell(f"simulating program {number} of {count}")
            found.append(profile(program, timing, limit=limit))
    time = end_to_end(model, sum(each.report.cycles or 0 for each in found), clock,
                      host_timer(board, clock))
    if report is not None:
        _write_report(path, model, report, timing, time, silent=as_json)
    places = [name_program(path, number, count) for number in range(count)]
    write_table(table, engine_rows(places, found), silent=as_json)
    if as_json:
        typer.echo(json.dumps({
            "programs": [_with_time(each, clock) for each in found], "network": {
                **time.to_dict(),
                "cpu_nodes": [{"name": name, "seconds": each.seconds, "inside": each.inside,
                               "time_source": each.source.value}
                              for name, each in time.host.nodes.items()]}}))
        return
    show_profiles(places, found, clock)
    show_end_to_end(f"{path}, the whole network", model, time, all_reasons=all_reasons)


def _write_report(path: Path, model: Model, target: Path, timing: MemoryTiming | None,
                  time: EndToEnd, *, silent: bool) -> None:
    """Write the report on a network whose times are known."""
    from ..runtime.reports.layers import inspect_model

    found = inspect_model(model, timing, clock=time.clock, time_host=lambda _: time.host)
    write_inspections({path.name: found}, target, silent=silent)


def write_program_report(path: Path, program: Program, target: Path, *, memory: str,
                         limit: int | None, silent: bool, clock: Clock | None = None) -> None:
    """Write the report on a program."""
    from ..report.save_report import inspect_source

    found = inspect_source(program, path.name, timing_of(memory), clock=clock, limit=limit)
    write_inspections({path.name: found}, target, silent=silent)


def engine_rows(places: list[str], found: list[Profile]) -> list[dict[str, object]]:
    """A row for each engine of each program."""
    return [{"program": place, "cycles": each.report.cycles, **asdict(engine)}
            for place, each in zip(places, found, strict=True) for engine in each.engines]


def show_profiles(places: list[str], found: list[Profile], clock: Clock, *,
                  table: Path | None = None, as_json: bool = False) -> None:
    """Profiles of programs, each with the time that it takes at a clock."""
    from ..runtime.reports.tables import show_profile

    write_table(table, engine_rows(places, found), silent=as_json)
    for place, each in zip(places, found, strict=True):
        if as_json:
            typer.echo(json.dumps(_with_time(each, clock)))
        else:
            time = clock.seconds(each.report.cycles or 0) * 1e3
            show_profile(place, each, f"{time:,.3f} ms at {clock}")


def _with_time(profile: Profile, clock: Clock) -> dict[str, object]:
    milliseconds = clock.seconds(profile.report.cycles or 0) * 1e3
    return {**profile.to_dict(), "mhz": clock.mhz, "clock_source": clock.source,
            "milliseconds": milliseconds}


def name_program(path: Path, number: int, count: int) -> str:
    """What messages call a program of a network."""
    return f"{path}, program {number + 1} of {count}" if count > 1 else str(path)


def verdicts_of_model(path: Path, config: str,
                      fixed: ModelInputs) -> list[tuple[str, Verdict]]:
    """What `microtron verify` says about each program of a network."""
    from ..base.progress import report_progress
    from ..isa.verification.verifier import inspect as judge

    model = open_model(path, config, fixed, "")
    found, count = [], len(model.programs)
    with report_progress("verifying") as tell:
        for number, program in enumerate(model.programs):
            tell(f"verifying program {number + 1} of {count}")
            found.append((name_program(path, number, count), judge(program)))
    return found


def disassemble_model(path: Path, config: str, fixed: ModelInputs) -> str:
    """What `microtron disasm` prints for a network: its programs, one after the other."""
    from ..isa.assembly.disassembler import disassemble

    model = open_model(path, config, fixed, "")
    texts = [disassemble(program) for program in model.programs]
    if len(texts) == 1:
        return texts[0]
    return "".join(f"; program {number} of {len(texts)}\n{text}"
                   for number, text in enumerate(texts, 1))
