"""The main loop of the cycle-exact simulator, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...base.arrays import Dtype
from ...base.source_digest import source_digest
from ...isa.instructions import Engine, MicroOp
from ...isa.record import fields_of
from ..llvm.decorators import Blank, inline
from ..llvm.entry import Entry
from ..llvm.values import NUMBER, Array, Kind, Record
from ..twins.decode import ROW
from ..twins.record_types import Machines, MicroOps, Numbers
from ..twins.top import (
    FIRST_COUNTER,
    LAYOUT,
    SAME,
    SETTINGS,
    TIMING,
    WIRES,
    cycle,
    news,
)
from . import skip_memory_side, skip_repeats
from .bundles import Given, Loads, Notes, Past, State
from .event_log import note

PASTS, OLD = 3, 2           # saved states to compare with; the last is the older one
SHORTEST, LONGEST = 4, 16   # cycles after which it is saved again
CALM = 4                    # cycles without an event after which states are compared
PAUSE = 1 << 20             # cycles after which to return to Python, for Ctrl-C: half a second
OVER, PAUSED, STUCK = range(3)
ENGINES, UOP_FIELDS = len(Engine), len(fields_of(MicroOp))
blank_wires = Blank(WIRES)


def simulate(machines: Machines, all_words: Numbers, given: Given, loads: Loads, uops: MicroOps,
             notes: Notes, limit: int, skip: bool) -> int:
    """Run decoded code until it ends, or for a while. Returns OVER; or PAUSED, to be called again
    with the same arguments; or STUCK, if it reached the limit or would run forever.

    The first of the machines runs; the others hold earlier states of it. `all_words` is the same
    memory as an array of words.
    """
    state, past = State(machines[0], all_words[0]), Past(machines[1:], all_words[1:])
    machine, words, saved = state.machine, state.words, past.words
    counters = words[FIRST_COUNTER:]
    newer, age, patience = 0, 0, SHORTEST   # of the older one: its age, and when to save it again
    hint_1, hint_2, hint_old = 0, 0, 0
    skip_repeats.forget(saved)
    effort, calm = 0, 0                     # cycles that were not skipped; without an event
    while machine.control.ended == 0:
        now = machine.clock.now
        if now >= limit:
            return STUCK
        if effort >= PAUSE:
            return PAUSED
        if skip:
            most = skip_memory_side.horizon(machine, given)
            if most:
                loaded, steps = skip_memory_side.advance(
                    state, past, given, uops, notes, min(most, limit - now, PAUSE),
                    most == skip_repeats.FOREVER)
                if loaded == skip_memory_side.NEVER:
                    return STUCK
                effort += steps
                _load_micro_ops(loaded, uops, loads)
                skip_repeats.forget(saved)
                age, patience = 0, SHORTEST
                continue
        effort += 1
        wires = blank_wires()
        cycle(machine, counters, wires, given.code, given.config, given.timing, given.positions,
              uops)
        is_new = wires.dispatched or news(wires)
        if is_new:
            note(wires, now, notes, counters)
        is_calm = not is_new and wires.hard | wires.fetched | wires.asked | wires.turned == 0
        calm = calm + 1 if is_calm else 0
        _load_micro_ops(wires.load_end, uops, loads)
        if not skip:
            continue
        if calm < CALM:                     # no earlier state can come again, or hardly so soon
            skip_repeats.forget(saved)
            age, patience = 0, SHORTEST
            continue
        age += 1
        number, period = newer, 1
        found = hint_1 = skip_repeats.difference(words, saved[newer], 0, SAME, hint_1)
        if found != SAME:
            number, period = 1 - newer, 2
            found = hint_2 = skip_repeats.difference(words, saved[1 - newer], 0, SAME, hint_2)
            if found != SAME:
                number, period = OLD, age
                found = hint_old = skip_repeats.difference(words, saved[OLD], 0, SAME, hint_old)
        periods = 0
        if found == SAME:
            periods = skip_repeats.skip(state, State(past.machines[number], saved[number]), given,
                                        (limit - now - 1) // period)
            if periods == skip_repeats.FOREVER:
                return STUCK
        if periods:
            skip_repeats.forget(saved)
            age, patience = 0, SHORTEST
        elif age >= patience:
            skip_repeats.save(words, saved[OLD])
            age, patience = 0, min(2 * patience, LONGEST)
        newer = 1 - newer
        skip_repeats.save(words, saved[newer])
    return OVER


@inline
def _load_micro_ops(ended: int, uops: MicroOps, loads: Loads) -> None:
    """Write the micro-ops of the load that ended, if one did."""
    if ended >= 0:
        begin, stop = loads.span[ended]
        for number in range(begin, stop):
            for field in range(UOP_FIELDS):
                uops[loads.tile[number], field] = loads.values[number, field]


def _array(dtype: npt.DTypeLike, *lengths: int | None) -> Kind:
    """A placeholder for an array argument, of its type."""
    return Array(np.dtype(dtype), lengths)


def _record(dtype: Dtype) -> Kind:
    return Record(dtype)


WORDS = LAYOUT.dtype.itemsize // np.dtype(np.int64).itemsize
GIVEN = Given(code=_array(ROW, None), positions=_array(np.int64, ENGINES, None),
              config=_record(SETTINGS), timing=_record(TIMING), floors=_array(np.int64, None))
LOADS = Loads(tile=_array(np.int64, None), values=_array(np.uint16, None, UOP_FIELDS),
              span=_array(np.int64, None, 2))
MACHINES, ALL_WORDS = _array(LAYOUT.dtype, 1 + PASTS), _array(np.int64, 1 + PASTS, WORDS)
compiled = Entry(simulate, {
    "machines": MACHINES, "all_words": ALL_WORDS, "given": GIVEN, "loads": LOADS,
    "uops": _array(np.uint16, None, UOP_FIELDS),
    "notes": Notes(times=_array(np.int64, None, 3), waits=_array(np.int64, None, ENGINES),
                   seen=_array(np.int64, ENGINES, ENGINES)),
    "limit": NUMBER, "skip": NUMBER}, name="cycle-exact simulator",
    sources=source_digest(__name__))
