"""What the simulator writes down of an instruction: when it came, started and ended, and its
waits."""

from __future__ import annotations

from typing import Any

from ...isa.instructions import Engine
from ..twins.control import WAITS
from ..twins.registers import inlined

ENGINES = len(Engine)
LOAD, GEMM, ALU, STORE = (int(each) for each in Engine)


@inlined
def note(wires: Any, now: int, times: Any, waits: Any, counters: Any, seen: Any) -> None:
    """Write down what came, started and ended in a cycle."""
    if wires.dispatched:
        times[wires.fetch_position, 0] = now
    _note_engine(wires.load_start, wires.load_end, LOAD, now, times, waits, counters, seen)
    _note_engine(wires.gemm_start, wires.gemm_end, GEMM, now, times, waits, counters, seen)
    _note_engine(wires.alu_start, wires.alu_end, ALU, now, times, waits, counters, seen)
    _note_engine(wires.store_start, wires.store_end, STORE, now, times, waits, counters, seen)


@inlined
def _note_engine(started: int, ended: int, engine: int, now: int, times: Any, waits: Any,
                 counters: Any, seen: Any) -> None:
    if ended >= 0:
        times[ended, 2] = now
    if started >= 0:
        times[started, 1] = now
        for giver in range(ENGINES):
            if giver != engine:
                total = counters[WAITS[engine, giver]]
                waits[started, giver] = total - seen[engine, giver]
                seen[engine, giver] = total
