"""What happened when: the timeline of a whole inference, CPU and accelerator, for the page."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from ..base.arrays import Array
from ..base.checked_values import PlainData
from ..isa.config import Config
from ..isa.instructions import INSTRUCTION_BYTES, Buffer, Load, Store
from ..isa.stream import Stream, as_bytes, positions_of
from ..runtime.reports.inference_timeline import InferenceTimeline, PlacedProgram
from ..runtime.reports.layers import Inspection
from .encoding import encode_array


def timeline_data(found: Inspection, timeline: InferenceTimeline) -> PlainData:
    """The timeline for assets/events.js."""
    return {"cycles": timeline.cycles, "mhz": found.end_to_end.clock.mhz,
            "cpu": [asdict(each) for each in timeline.cpu],
            "peak": found.model.config.bus_bytes / cycles_per_beat(found),
            "programs": [_program(found, each) for each in timeline.programs]}


def cycles_per_beat(found: Inspection) -> int:
    """Of the memory that was simulated."""
    memory = next((each.memory for each in found.reports), None) or found.model.memory
    return memory.cycles_per_beat


def _program(found: Inspection, placed: PlacedProgram) -> PlainData:
    program, timeline = placed.program, placed.report.timeline
    assert timeline is not None, "the simulator keeps one"
    start, end = timeline.start, timeline.end
    data = {
        "step": placed.step, "base": placed.base, "cycles": placed.report.cycles,
        "count": len(program.code), "segments": [each.name for each in program.segments],
        "word": INSTRUCTION_BYTES, "layers": _layers(found, placed),
        # Bytes of the same place of all words stand together, which deflates far better.
        "code": encode_array(np.ascontiguousarray(as_bytes(program.code).T)),
        "start": encode_array(start, delta=True), "length": encode_array(end - start),
        "bytes": encode_array(transfer_bytes(program.code, program.config))}
    if timeline.dispatched is not None:
        data["dispatched"] = encode_array(timeline.dispatched, delta=True)
    if timeline.waits is not None:
        data["waits"] = encode_array(np.ascontiguousarray(timeline.waits.T))
    return data


def _layers(found: Inspection, placed: PlacedProgram) -> list[PlainData]:
    """Layers by their first instruction, and the cycles that each has of the program."""
    rows: dict[int, PlainData] = {}
    for index, cost in enumerate(found.layers):
        if cost.node.step == placed.step and cost.node.label in placed.program.labels:
            first = placed.program.labels[cost.node.label]
            row = rows.setdefault(first, {"first": first, "names": [], "layers": [], "cycles": 0})
            row["names"].append(cost.node.title)
            row["layers"].append(index)
            row["cycles"] += cost.cycles or 0
    return [rows[first] for first in sorted(rows)]


def transfer_bytes(code: Stream, config: Config) -> Array:
    """Bytes that each instruction moves to or from DRAM."""
    tile = np.array([config.tile_bytes(each) for each in Buffer], np.int64)
    moved = np.zeros(len(code), np.int64)
    for kind in (Load, Store):
        positions, words = positions_of(code, kind)
        moved[positions] = words["shape"].astype(np.int64).prod(1) * tile[words["buffer"]]
    return moved
