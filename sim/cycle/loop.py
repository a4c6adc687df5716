"""The loop of the cycle-exact simulator, compiled. Importing this module imports numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ..compiled.checksum import CYCLE, checksum
from ..compiled.local_records import blank
from ..compiled.unowned_arrays import unowned
from ..twins.registers import inlined
from ..twins.top import FIRST_COUNTER, MEMORY_SAME, SAME, WIRES, cycle, news
from . import skip_memory_side, skip_repeats
from .notes import note

CHECKSUM = checksum(CYCLE)
PASTS, OLD = 3, 2           # machines that are kept to compare with; the last is the older one
SHORTEST, LONGEST = 4, 16   # cycles after which it is kept anew
PAUSE = 1 << 20             # cycles after which Python is asked whether to go on: half a second
OVER, PAUSED, STUCK = range(3)
blank_wires = blank(WIRES)


@numba.njit(cache=True, error_model="numpy", nogil=True)
def simulate(machines: Any, code: Any, configs: Any, timings: Any, positions: Any,
             uops: Any, uop_tile: Any, uop_values: Any, uop_span: Any, times: Any, waits: Any,
             seen: Any, floors: Any, limit: int, skip: bool, formulas: int = CHECKSUM) -> Any:
    """Run decoded code until it stops, or for a while. Returns whether it is OVER, has PAUSED, to
    be called again with all that it has changed, or is STUCK: at the limit, or for ever.

    Records come as arrays of one. `times` and `waits` are noted by instruction: dispatched, start
    and end, and cycles for which each engine's token was waited for; `seen` is what was waited for
    by those that had started.
    """
    accelerator, config, memory = machines[0], configs[0], timings[0]
    code, positions, uops = unowned(code), unowned(positions), unowned(uops)
    flat = unowned(machines.view(np.int64))
    counters = flat[FIRST_COUNTER:]
    pasts = np.zeros(PASTS, machines.dtype)     # the last cycle, the one before, and an older one
    kept = unowned(pasts.view(np.int64).reshape(PASTS, len(flat)))
    newer, age, patience = 0, 0, SHORTEST   # of the older one: its age, and when to keep anew
    place, hint_1, hint_2, hint_old = MEMORY_SAME, 0, 0, 0
    skip_repeats.forget(kept)
    times, waits, seen, floors = unowned(times), unowned(waits), unowned(seen), unowned(floors)
    uop_tile, uop_values, uop_span = unowned(uop_tile), unowned(uop_values), unowned(uop_span)
    effort = 0                              # cycles that were not skipped
    while accelerator.control.ended == 0:
        now = accelerator.clock.now
        if now >= limit:
            return STUCK
        if effort >= PAUSE:
            return PAUSED
        effort += 1
        wires = blank_wires()
        cycle(accelerator, counters, wires, code, config, memory, positions, uops)
        if wires.dispatched or news(wires):
            note(wires, now, times, waits, counters, seen)
        _load_micro_ops(wires.load_end, uops, uop_tile, uop_values, uop_span)
        if not skip:
            continue
        place = skip_repeats.difference(flat, kept[newer], MEMORY_SAME, SAME, place)
        if place == SAME:
            most = skip_memory_side.horizon(accelerator, pasts[newer], flat, kept[newer], code,
                                            config, memory, positions, uops, floors)
            if most:
                loaded, steps = skip_memory_side.advance(
                    accelerator, pasts, flat, kept, counters, newer, code, config, memory,
                    positions, floors, times, waits, seen, min(most, limit - now - 1),
                    most == skip_repeats.FOREVER)
                if loaded == skip_memory_side.NEVER:
                    return STUCK
                effort += steps
                _load_micro_ops(loaded, uops, uop_tile, uop_values, uop_span)
                skip_repeats.forget(kept)
                skip_repeats.keep(flat, kept[newer])
                age, patience = 0, SHORTEST
                continue
        age += 1
        number, period = newer, 1
        found = hint_1 = skip_repeats.difference(flat, kept[newer], 0, SAME, hint_1)
        if found != SAME:
            number, period = 1 - newer, 2
            found = hint_2 = skip_repeats.difference(flat, kept[1 - newer], 0, SAME, hint_2)
            if found != SAME:
                number, period = OLD, age
                found = hint_old = skip_repeats.difference(flat, kept[OLD], 0, SAME, hint_old)
        periods = 0
        if found == SAME:
            periods = skip_repeats.skip(accelerator, pasts[number], flat, kept[number], code,
                                        config, positions, floors, (limit - now - 1) // period)
            if periods == skip_repeats.FOREVER:
                return STUCK
        if periods:
            skip_repeats.forget(kept)
            age, patience = 0, SHORTEST
        elif age >= patience:
            skip_repeats.keep(flat, kept[OLD])
            age, patience = 0, min(2 * patience, LONGEST)
        newer = 1 - newer
        skip_repeats.keep(flat, kept[newer])
    return OVER


@inlined
def _load_micro_ops(ended: int, uops: Any, uop_tile: Any, uop_values: Any, uop_span: Any) -> None:
    """What a load, if one ended, brought."""
    if ended >= 0:
        begin, stop = uop_span[ended]
        for number in range(begin, stop):
            uops[uop_tile[number]] = uop_values[number]
