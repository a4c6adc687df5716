"""Records when instructions were dispatched, started and ended, and how long they waited."""

from __future__ import annotations

from ...isa.instructions import Engine
from ..llvm.decorators import inline
from ..twins.control import WAITS
from ..twins.record_types import Numbers, Wires
from .bundles import Notes

ENGINES = len(Engine)
LOAD, GEMM, ALU, STORE = (int(each) for each in Engine)


@inline
def note(wires: Wires, now: int, notes: Notes, counters: Numbers) -> None:
    """Record the instructions dispatched, started and ended in a cycle."""
    if wires.dispatched:
        notes.times[wires.fetch_position, 0] = now
    _note_engine(wires.load_start, wires.load_end, LOAD, now, notes, counters)
    _note_engine(wires.gemm_start, wires.gemm_end, GEMM, now, notes, counters)
    _note_engine(wires.alu_start, wires.alu_end, ALU, now, notes, counters)
    _note_engine(wires.store_start, wires.store_end, STORE, now, notes, counters)


@inline
def _note_engine(started: int, ended: int, engine: int, now: int, notes: Notes,
                 counters: Numbers) -> None:
    if ended >= 0:
        notes.times[ended, 2] = now
    if started >= 0:
        notes.times[started, 1] = now
        for giver in range(ENGINES):
            if giver != engine:
                total = counters[WAITS[engine, giver]]
                notes.waits[started, giver] = total - notes.seen[engine, giver]
                notes.seen[engine, giver] = total
