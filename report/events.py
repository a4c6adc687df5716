"""What happened when: the timeline of a whole inference, CPU and accelerator, on one axis.

The axis counts cycles of the accelerator's clock from the start of an inference. Steps follow one
another; the CPU's times are turned into cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Array
from ..base.checked_values import PlainData
from ..compiler.network.network import Where
from ..isa.config import Config
from ..isa.instructions import INSTRUCTION_BYTES, Buffer, Load, Store
from ..isa.program import Program
from ..isa.stream import Stream, as_bytes, positions_of
from ..runtime.models.compiled_model import ProgramStep
from ..runtime.reports.layers import Inspection
from ..runtime.times.host_times import Handover
from ..sim.report import Report
from .encoding import encode_array


@dataclass(frozen=True)
class PlacedProgram:
    """A program of a network, and the cycle of the inference at which it starts."""

    step: int
    program: Program
    report: Report
    base: float


def place_programs(found: Inspection) -> tuple[list[PlacedProgram], list[PlainData], float]:
    """Programs and the CPU's work on one axis, and where the axis ends."""
    programs: list[PlacedProgram] = []
    cpu: list[PlainData] = []
    reports = iter(found.reports)
    now = 0.0
    for number, step in enumerate(found.model.steps):
        if not isinstance(step, ProgramStep):
            now = _add_nodes(found, number, cpu, now)
            continue
        handed = [each for each in found.end_to_end.host.handovers if each.step == number]
        now = _add_handovers(found, handed, True, cpu, now)
        report = next(reports)
        programs.append(PlacedProgram(number, step.program, report, now))
        now = _add_handovers(found, handed, False, cpu, now + (report.cycles or 0))
    return programs, cpu, now


def _add_nodes(found: Inspection, step: int, cpu: list[PlainData], now: float) -> float:
    for cost in found.layers:
        if cost.node.where == Where.CPU and cost.node.step == step and cost.seconds:
            now = _add(found, cpu, now, cost.seconds, cost.node.title, cost.node.operator)
    return now


def _add_handovers(found: Inspection, handed: list[Handover], to_accelerator: bool,
                   cpu: list[PlainData], now: float) -> float:
    for each in handed:
        if each.to_accelerator == to_accelerator and each.seconds:
            now = _add(found, cpu, now, each.seconds, each.tensor,
                       "pack into tiles" if to_accelerator else "unpack from tiles")
    return now


def _add(found: Inspection, cpu: list[PlainData], now: float, seconds: float, name: str,
         what: str) -> float:
    end = now + seconds * found.end_to_end.clock.mhz * 1e6
    cpu.append({"name": name, "what": what, "start": now, "end": end, "seconds": seconds})
    return end


def timeline_data(found: Inspection, programs: list[PlacedProgram], cpu: list[PlainData],
                  cycles: float) -> PlainData:
    """The timeline for assets/events.js."""
    return {"cycles": cycles, "mhz": found.end_to_end.clock.mhz, "cpu": cpu,
            "peak": found.model.config.bus_bytes / cycles_per_beat(found),
            "programs": [_program(found, each) for each in programs]}


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
