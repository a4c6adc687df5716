"""One inference as a file for Perfetto: the CPU's nodes, the layers and all instructions of the
engines on one time line.

One microsecond of the file is one cycle of the accelerator's clock, as in the trace of a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ...base.atomic_files import Content
from ...base.errors import MicrotronError
from ...sim.report import Report
from ...sim.timeline import Timeline
from ..models.compiled_model import CompiledModel
from ..times.end_to_end import EndToEnd
from .inference_timeline import CpuSpan, InferenceTimeline, PlacedProgram, layer_spans, place_steps
from .trace import (
    LAYER_TRACK,
    Event,
    assign_tracks,
    format_for,
    name_process,
    name_track,
    name_tracks,
    program_events,
    trace_content,
    write_events,
)

ACCELERATOR, CPU = 0, 1             # processes of the file
DIGITS = 3                          # of the CPU's times: Perfetto keeps nanoseconds


def check_trace(path: Path, model: CompiledModel) -> None:
    """Refuse a file that cannot hold the trace of a model, before a long run."""
    format_for(path)
    if path.suffix != ".json" and len(model.programs) != 1:
        raise MicrotronError(f"{path}: columns are of one program, but {model.name or 'the model'} "
                             f"has {len(model.programs)}; a .json file shows all of them")


def network_trace_content(path: Path, model: CompiledModel, reports: Sequence[Report],
                          time: EndToEnd) -> Content:
    """The trace of an inference, in the format that the file's name asks for; columns are of the
    program alone."""
    check_trace(path, model)
    if path.suffix != ".json":
        return trace_content(path, model.programs[0], reports[0])
    timeline = place_steps(model, reports, time)
    return write_events(_events(model, timeline), {
        "device": reports[0].device if reports else "", "config": model.config.to_dict(),
        "model": model.name, "cycles": time.cycles, "clock_mhz": time.clock.mhz,
        "cpu": time.host.processor, "unit": "1 µs is 1 cycle of the accelerator"})


def _events(model: CompiledModel, timeline: InferenceTimeline) -> Iterator[Event]:
    yield name_process(ACCELERATOR, "accelerator")
    yield name_process(CPU, "cpu")
    yield from name_track(CPU, 0, "cpu", 0)
    yield from name_track(ACCELERATOR, LAYER_TRACK, "layers", -1)
    for each in timeline.cpu:
        yield _cpu_slice(each)
    tracks = [assign_tracks(each.program, _timeline_of(each)) for each in timeline.programs]
    if tracks:
        yield from name_tracks(np.concatenate(tracks))
    arrows = 0
    for number, (placed, chosen) in enumerate(zip(timeline.programs, tracks, strict=True), 1):
        yield from _layer_slices(model, placed, number)
        for event in program_events(placed.program, _timeline_of(placed), chosen, placed.base,
                                    arrows):
            arrows += event["ph"] == "s"
            yield event


def _timeline_of(placed: PlacedProgram) -> Timeline:
    found = placed.report.timeline
    if found is None:
        raise MicrotronError(f"the {placed.report.device} device has no clock, so a run has no "
                             f"timeline to write")
    return found


def _cpu_slice(span: CpuSpan) -> Event:
    start = round(span.start, DIGITS)
    return {"ph": "X", "pid": CPU, "tid": 0, "ts": start,
            "dur": round(max(0.0, round(span.end, DIGITS) - start), DIGITS), "cat": "cpu",
            "name": span.name, "args": {"what": span.what, "seconds": span.seconds}}


def _layer_slices(model: CompiledModel, placed: PlacedProgram, number: int) -> Iterator[Event]:
    """A slice for the program, and inside of it one for each layer."""
    common = {"ph": "X", "pid": ACCELERATOR, "tid": LAYER_TRACK}
    base = placed.base
    yield {**common, "ts": base, "dur": placed.report.cycles or 0, "cat": "program",
           "name": f"program {number}", "args": {"instructions": len(placed.program.code)}}
    for each in layer_spans(model, placed):
        yield {**common, "ts": base + each.start, "dur": each.end - each.start, "cat": "layer",
               "name": " + ".join(node.title for node in each.nodes),
               "args": {"operators": [node.operator for node in each.nodes],
                        "macs": sum(node.macs for node in each.nodes),
                        "first_instruction": each.first}}
