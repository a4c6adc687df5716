"""Cycles of a schedule by a coarse simulation of its steps, and what they react to.

The compiler's estimate, which ranks thousands of candidates at once, takes the slowest engine for
all steps. This is slower, and closer where engines wait for each other in turns: few steps, few
bursts in flight, long latency, a bus that turns. No program is made. What the hardware does besides
is left to a cost model, which learns the ratio.
"""

from __future__ import annotations

import numpy as np

from ...compiler.operators.catalogue import operator_of
from ...compiler.operators.cost_model import record_steps
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ..points import LayerPoint
from .recorded_steps import merge_runs, own_steps
from .schedule_loops import loops_of
from .step_events import simulate_loops
from .step_records import IN_A_BURST, MANY, ROOM, Loops
from .step_table import COLUMNS, MOST_ROWS

# Cycles in all, of the bus and of each engine; then those in all if memory were near, if nothing
# were loaded ahead, with half as many reads in flight, if the bus turned at once, and if GEMM and
# the ALU took turns; and those of a bus that turns as often as it can.
PARTS = ("cycles", "bus", "load", "gemm", "alu", "store", "near", "serial", "crowded", "smooth",
         "turns", "restless")
# Longer loops only repeat what is in these.
MOST_GROUPS, MOST_STEPS, MOST_PIECES, MOST_BURSTS = 4, 48, 24, 12_000
LEAST_STEPS, LEAST_PIECES, GROUP_PIECES = 8, 4, 60
_rows, _ends = np.zeros((MOST_ROWS, COLUMNS)), np.zeros((2, MOST_ROWS))
_numbers, _places = np.zeros((12, ROOM)), np.zeros((13, ROOM), np.int64)
_order = np.zeros((5, MOST_ROWS), np.int64)


def pipeline_of(point: LayerPoint) -> dict[str, float]:
    """Cycles of a point, roughly, those in which each engine and the bus are busy, and how many it
    would be otherwise: what they react to tells a cost model where the simulation may err."""
    template, form, knobs = operator_of(point.layer).template, point.form, point.schedule.knobs
    with record_steps() as recorded:
        estimate = float(template.estimate(form, knobs, point.memory))
    steps = merge_runs(form, knobs, recorded[0]) if recorded else own_steps(form, knobs)
    if steps is None:
        return dict.fromkeys(PARTS, float("nan")) | {"cycles": estimate}
    loops, memory = loops_of(form, knobs, steps), point.memory
    reads = min(point.config.reads_in_flight, memory.reads)
    writes = min(point.config.writes_in_flight, memory.writes)

    def cycles(loops: Loops, *, read: int = memory.read_latency, write: int = memory.write_latency,
               in_flight: int = reads, turn: int = memory.turn) -> float:
        return _cycles(loops, read, write, memory.cycles_per_beat, turn, memory.shared, in_flight,
                       writes)
    exact = cycles(loops)
    totals = _totals(loops, memory, point.config)
    least = max(totals["bus"], totals["gemm"], totals["alu"])
    found = {"cycles": max(exact, least), **totals,
            "near": cycles(loops, read=1, write=1),
            "serial": cycles(loops._replace(buffers=1, sums=1)),
            "crowded": cycles(loops, in_flight=max(1, reads // 2)),
            "smooth": cycles(loops, turn=0) if memory.turn and memory.shared else exact,
            "turns": totals["gemm"] + totals["alu"] / point.config.vector_cycles}
    return {name: found[name] for name in PARTS}


def _totals(loops: Loops, memory: MemoryTiming, config: Config) -> dict[str, float]:
    """Cycles of all work of each engine, and beats of the bus."""
    steps = loops.groups * loops.steps
    pieces = steps * loops.pieces
    inputs = loops.fresh * loops.steps * loops.pieces * loops.inp_bursts * loops.inp_beats
    weights = (loops.groups * loops.pieces if loops.wgt_stays else pieces) * (
        loops.wgt_bursts * loops.wgt_beats)
    results = steps * loops.out_bursts * loops.out_beats
    code = (pieces * (loops.inp_loads + loops.gemms + 1) + steps * (
        loops.sum_alus + loops.alus + loops.stores)
            ) * loops.code_beats / IN_A_BURST
    sets = 1 if loops.par_once else steps if loops.par_every else loops.groups
    read = inputs + weights + code + sets * loops.par_bursts * loops.par_beats
    bus = max(read, results) if not memory.shared else read + results
    turns = 2 * memory.turn * min(read, results) if memory.shared else 0
    return {"bus": bus * memory.cycles_per_beat,
            "restless": bus * memory.cycles_per_beat + turns,
            "load": inputs * loops.inp_rate + weights, "gemm": pieces * loops.products,
            "alu": steps * (loops.sum_vectors + loops.vectors + loops.clears + loops.pieces * (
                loops.piece_vectors + loops.inp_loads * loops.load_vectors)),
            "store": results}


def _cycles(loops: Loops, *memory: float) -> float:
    """Simulated, on loops that are cut where they only repeat themselves."""
    cut, latency = _cut(loops), memory[0]
    cycles: float = simulate_loops(             # type: ignore[assignment]
        np.array(cut, float), np.array(memory, float), _rows, _numbers, _places, _ends, _order)
    if cut is loops:
        return cycles
    ends, last = _numbers[0], cut.groups - 1
    longer = loops.steps * loops.pieces / (cut.steps * cut.pieces)
    begin = min(ends[0], 2 * latency + 40)
    # Where GEMM goes a step ahead, the last group ends sooner after the one before than others do.
    late = max(1, last - 1)
    early = (late - 1) // 2
    again = (ends[late] - ends[early]) / (late - early) if last else 0.0
    inside = ends[last] - begin + (loops.groups - cut.groups) * again
    return float(begin + longer * inside + cycles - ends[last])


def _cut(loops: Loops) -> Loops:
    """Fewer groups, steps and pieces."""
    steps, pieces = min(loops.steps, MOST_STEPS), min(loops.pieces, MOST_PIECES)
    groups = min(loops.groups, max(MOST_GROUPS, GROUP_PIECES // (steps * pieces)))
    piece = 3 + min(MANY, loops.inp_bursts) + (0 if loops.wgt_stays else min(
        MANY, loops.wgt_bursts))
    step = 3 + min(MANY, loops.out_bursts)
    while groups * steps * (pieces * piece + step) > MOST_BURSTS:
        if steps > LEAST_STEPS:
            steps = max(LEAST_STEPS, steps // 2)
        elif pieces > LEAST_PIECES:
            pieces = max(LEAST_PIECES, pieces // 2)
        elif groups > 2:
            groups -= 1
        else:
            break
    if (groups, steps, pieces) == (loops.groups, loops.steps, loops.pieces):
        return loops
    return loops._replace(groups=groups, steps=steps, pieces=pieces)
