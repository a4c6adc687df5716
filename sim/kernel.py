"""The loop of the cycle-exact simulator, compiled. Importing this module imports numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ..isa import bounds, faults, instructions, registers, timing
from . import (
    accumulator,
    alu,
    alu_results,
    control,
    dram,
    fetch,
    gemm,
    load,
    load_writer,
    local,
    machine,
    packing,
    queue,
    quiet,
    reader,
    rows,
    store,
    store_reader,
    tokens,
    unit,
    writer,
)
from .control import WAITS
from .local import blank
from .machine import FIRST_COUNTER, SAME, WIRES, cycle, news
from .sources import checksum
from .unit import inlined
from .unowned import unowned

TWINS = (accumulator, alu, alu_results, control, dram, fetch, gemm, load, load_writer, local,
         machine, packing, queue, quiet, reader, rows, store, store_reader, tokens, unit, writer)
CHECKSUM = checksum(*TWINS, bounds, faults, instructions, registers, timing)
ENGINES = len(instructions.Engine)
PASTS, OLD = 3, 2           # machines that are kept to compare with; the last is the older one
SHORTEST, LONGEST = 4, 16   # cycles after which it is kept anew
LOAD, GEMM, ALU, STORE = (int(each) for each in instructions.Engine)
blank_wires = blank(WIRES)


@numba.njit(cache=True, error_model="numpy")
def simulate(machines: Any, code: Any, configs: Any, timings: Any, positions: Any,
             uops: Any, uop_tile: Any, uop_values: Any, uop_span: Any, times: Any, waits: Any,
             floors: Any, limit: int, skip: bool, formulas: int = CHECKSUM) -> Any:
    """Run decoded code until it stops. Returns whether it does not: at the limit, or never.

    Records come as arrays of one. `times` and `waits` are noted by instruction: dispatched, start
    and end, and cycles for which each engine's token was waited for.
    """
    accelerator, config, memory = machines[0], configs[0], timings[0]
    code, positions, uops = unowned(code), unowned(positions), unowned(uops)
    flat = unowned(machines.view(np.int64))
    counters = flat[FIRST_COUNTER:]
    pasts = np.zeros(PASTS, machines.dtype)     # the last cycle, the one before, and an older one
    kept = unowned(pasts.view(np.int64).reshape(PASTS, len(flat)))
    seen = np.zeros((ENGINES, ENGINES), np.int64)
    newer, age, patience = 0, 0, SHORTEST   # of the older one: its age, and when to keep anew
    hint_1 = hint_2 = hint_old = 0
    quiet.forget(kept)
    times, waits, floors = unowned(times), unowned(waits), unowned(floors)
    uop_tile, uop_values, uop_span = unowned(uop_tile), unowned(uop_values), unowned(uop_span)
    while accelerator.control.ended == 0:
        now = accelerator.control.now
        if now >= limit:
            return True
        wires = blank_wires()
        cycle(accelerator, counters, wires, code, config, memory, positions, uops)
        if wires.dispatched or news(wires):
            _note(wires, now, times, waits, counters, seen)
        if wires.load_end >= 0:
            begin, stop = uop_span[wires.load_end]
            for number in range(begin, stop):
                uops[uop_tile[number]] = uop_values[number]
        if not skip:
            continue
        age += 1
        number, period = newer, 1
        hint = hint_1 = quiet.difference(flat, kept[newer], hint_1)
        if hint != SAME:
            number, period = 1 - newer, 2
            hint = hint_2 = quiet.difference(flat, kept[1 - newer], hint_2)
            if hint != SAME:
                number, period = OLD, age
                hint = hint_old = quiet.difference(flat, kept[OLD], hint_old)
        periods = 0
        if hint == SAME:
            periods = quiet.skip(accelerator, pasts[number], flat, kept[number], code, config,
                                 positions, floors, (limit - now - 1) // period)
            if periods == quiet.FOREVER:
                return True
        if periods:
            quiet.forget(kept)
            age, patience = 0, SHORTEST
        elif age >= patience:
            quiet.keep(flat, kept[OLD])
            age, patience = 0, min(2 * patience, LONGEST)
        newer = 1 - newer
        quiet.keep(flat, kept[newer])
    return False


@inlined
def _note(wires: Any, now: int, times: Any, waits: Any, counters: Any, seen: Any) -> None:
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
