"""What differs between the hardware and its twin, in words: where both are, and how to see it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..base.errors import IsaError
from ..isa.image import program_image
from ..isa.instructions import Engine
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program, engines_of
from ..isa.stream import check
from ..sim.cycle.run import registers_at
from ..sim.cycle.stop_reasons import line
from ..sim.timeline import Timeline
from .compare import Comparison, Difference, Outcome

MOST = 5                # differences that are told
NANOSECONDS = 10        # of a cycle in a waveform

# The twin's units that an engine's start and end follow from.
UNITS: Mapping[Engine | None, tuple[str, ...]] = {
    Engine.LOAD: ("load_queue", "load", "load_rows", "load_steps", "load_write", "reader", "dram",
                  "tokens"),
    Engine.GEMM: ("gemm_queue", "gemm", "tokens"),
    Engine.ALU: ("alu_queue", "alu_sequencer", "alu_issue", "alu_results", "tokens"),
    Engine.STORE: ("store_queue", "store", "store_rows", "store_steps", "store_beats", "writer",
                   "dram", "tokens"),
    None: ("fetch", "buffer", "reader", "writer", "dram", "control")}


def describe_agreement(name: str, comparison: Comparison) -> str:
    """That nothing differs, and what there was to compare."""
    twin = comparison.twin
    instructions = f"{len(comparison.case.program.code):,} instructions"
    if twin.words:
        after = "" if twin.cycles is None else f" after {twin.cycles:,} cycles"
        return f"{name}: equal: {instructions}; both stop{after}: {twin.words}"
    return f"{name}: equal: {twin.cycles:,} cycles, {instructions}, all counters and memory"


def explain(comparison: Comparison, path: Path) -> str:
    """Everything about the first difference. The program is, or will be, in the file `path`."""
    first = comparison.differences[0]
    case = comparison.case
    lines = [f"{path}: differs first in cycle {first.cycle:,}: {first.what}", ""]
    lines += [f"{each.what}\n    rtl    {each.rtl}\n    cycle  {each.twin}"
              for each in comparison.differences[:MOST]]
    if len(comparison.differences) > MOST:
        lines.append(f"and {len(comparison.differences) - MOST} more differences")
    lines += ["", f"Where both are in cycle {first.cycle:,}:",
              *_places(case.program, comparison.rtl, comparison.twin, first.cycle), "",
              "Registers of the simulator when this cycle begins (where not 0):",
              *_registers(comparison, first), "", *_how_to_see(comparison, first, path)]
    return "\n".join(lines)


def save_case(comparison: Comparison, path: Path) -> None:
    """Write the program where `explain` says it is; one that no image can hold is left out."""
    if not _is_illegal(comparison.case.program):
        path.parent.mkdir(parents=True, exist_ok=True)
        program_image.save(comparison.case.program, path)


def format_timing(timing: MemoryTiming) -> str:
    """As `parse_timing` takes it; what is as usual is left out."""
    usual = MemoryTiming()
    return ",".join(f"{field.name}={int(getattr(timing, field.name))}"
                    for field in dataclasses.fields(timing)
                    if getattr(timing, field.name) != getattr(usual, field.name))


def _places(program: Program, rtl: Outcome, twin: Outcome, cycle: int) -> Iterator[str]:
    """Each engine on both sides."""
    engines = engines_of(program)
    for engine in Engine:
        mine = np.flatnonzero(engines == engine)
        for side, outcome in (("rtl", rtl), ("cycle", twin)):
            name = engine.name.lower() if side == "rtl" else ""
            yield f"    {name:5}  {side:5}  {_place(program, outcome.timeline, mine, cycle)}"


def _place(program: Program, timeline: Timeline, mine: npt.NDArray[np.intp], cycle: int) -> str:
    started = mine[(timeline.start[mine] >= 0) & (timeline.start[mine] <= cycle)]
    ended = (timeline.end[started] >= 0) & (timeline.end[started] <= cycle)
    words = f"{len(started)} started, {int(ended.sum())} ended"
    at_hand = started[~ended]
    return words if len(at_hand) == 0 else f"{words}, at {line(program, int(at_hand[0]))}"


def _registers(comparison: Comparison, first: Difference) -> Iterator[str]:
    case = comparison.case
    found = registers_at(case.program, first.cycle, timing=case.timing, failing=case.failing)
    for unit in UNITS[first.engine]:
        values = [_assignment(name, value) for name, value in found[unit].items() if np.any(value)]
        yield f"    {unit}: {' '.join(values) or 'all 0'}"


def _assignment(name: str, value: object) -> str:
    """Of an array, the elements that are not 0."""
    if not isinstance(value, list):
        return f"{name}={value}"
    held = ",".join(f"{place}:{each}" for place, each in enumerate(value) if each)
    return f"{name}={{{held}}}"


def _how_to_see(comparison: Comparison, first: Difference, path: Path) -> Iterator[str]:
    case = comparison.case
    if _is_illegal(case.program) or case.failing:
        yield ("No command runs this, for some words are no instructions, or some addresses "
               "fail; in Python, RtlDevice(config, timing=…, failing=…, waveform=…) does.")
        return
    memory = format_timing(case.timing)
    yield "A waveform of the hardware, and what both do with this program:"
    options = f" --memory {memory}" if memory else ""
    file = shlex.quote(str(path))
    yield (f"    microtron run {file} --no-check --device rtl "
           f"--waveform {shlex.quote(str(path.with_suffix('.fst')))}{options}")
    yield f"    microtron compare {file}{options}"
    yield (f"Cycle {first.cycle:,} lies {first.cycle * NANOSECONDS:,} ns after trace_running "
           f"rises.")


def _is_illegal(program: Program) -> bool:
    try:
        check(program.code)
    except IsaError:
        return True
    return False
