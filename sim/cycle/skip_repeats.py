"""Skips stretches of cycles in which nothing new happens.

When all `same` registers hold what they held a few cycles ago, the cycles since then are a period.
It repeats until a falling register reaches its floor, and everything else moves on in equal steps
(see `twins.registers`). A streaming burst has a period of one cycle; reads and writes that
alternate on the bus have one of two. The registers are compared with those of the last cycle, of
the one before and, for longer periods, with a copy that is renewed at growing intervals (Brent's
method).

Two kinds of moving registers influence decisions. One is tiles of the accumulator: two engines may
want the same bank, or a step of the ALU may read what another has yet to write. The other is the
number of the ALU's tickets, which may run out. `skip_banks` and `skip_alu` make sure that no such
situation begins or ends within the stretch.
"""

from __future__ import annotations

from ...isa.instructions import Engine
from ..twins.record_types import Code, Machine, Numbers
from ..twins.registers import CHUNK, inline
from ..twins.top import FALLING, MEMORY_FALLING, MEMORY_MOVING, MEMORY_SAME, MOVING, SAME
from . import skip_alu, skip_banks
from .bundles import Given, State

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
FOREVER = skip_alu.FOREVER


@inline
def difference(flat: Numbers, kept: Numbers, begin: int, end: int, hint: int) -> int:
    """The place of a difference in what should be the same; `end` if there is none. The `hint`,
    where there was one before, is tried first."""
    place = hint
    if place == end or _chunk_is_same(flat, kept, place):
        place = begin
        while place < end and _chunk_is_same(flat, kept, place):
            place += CHUNK
    return place


@inline
def _chunk_is_same(flat: Numbers, kept: Numbers, at: int) -> bool:
    """Compares without branching on each word, which would take longer."""
    differing = (flat[at] ^ kept[at] | flat[at + 1] ^ kept[at + 1] | flat[at + 2] ^ kept[at + 2]
                 | flat[at + 3] ^ kept[at + 3])
    return int(differing) == 0


@inline
def keep(flat: Numbers, kept: Numbers) -> None:
    kept[:MOVING] = flat[:MOVING]


@inline
def keep_memory(flat: Numbers, kept: Numbers) -> None:
    """Like `keep`, for the memory side only."""
    kept[:MEMORY_SAME] = flat[:MEMORY_SAME]
    kept[SAME:MEMORY_FALLING] = flat[SAME:MEMORY_FALLING]
    kept[FALLING:MEMORY_MOVING] = flat[FALLING:MEMORY_MOVING]


@inline
def forget(kept: Numbers) -> None:
    """Make sure that no state equals what was kept."""
    for number in range(len(kept)):
        kept[number, 0] = kept[number, MEMORY_SAME] = -1


@inline
def periods_left(flat: Numbers, kept: Numbers, floors: Numbers, begin: int, end: int) -> int:
    """How often the period repeats before a falling register drops below its floor."""
    times = FOREVER
    for place in range(begin, end):
        value, step = flat[place], kept[place] - flat[place]
        if step < 0:
            return 0
        if step > 0:            # its last value in a period is one above where the next begins
            room = max(0, value - floors[place - SAME] + 1)
            times = min(times, room if step == 1 else room // step)     # division takes long
    return times


@inline
def move(flat: Numbers, kept: Numbers, begin: int, end: int, times: int) -> None:
    """Advance registers by a number of periods."""
    for place in range(begin, end):
        flat[place] += times * (flat[place] - kept[place])


@inline
def skip(state: State, kept: State, given: Given, most: int) -> int:
    """Skip as many periods as pass before something new happens. Returns their number, or FOREVER,
    without skipping any, if nothing ever will."""
    machine, before, code, config = state.machine, kept.machine, given.code, given.config
    times = periods_left(state.words, kept.words, given.floors, SAME, FALLING)
    if times == FOREVER:
        return times
    times = min(times, most)
    if times > 0 and not boxes_go_on(machine, before, code, given.positions):
        times = 0
    if times > 0:
        times = skip_alu.even_steps(machine, before, code, config, times)
    if times > 0 and not skip_banks.conflicts_repeat(machine, before, code, config, given.positions,
                                                     times):
        times = 0
    if times > 0:
        skip_alu.renew_tickets(machine, before, times)
        move(state.words, kept.words, SAME, MOVING, times)
    return times


@inline
def skip_memory(state: State, kept: State, given: Given, most: int, forever: bool) -> int:
    """The same for the memory side alone. `forever`: the compute side has nothing left to do."""
    times = periods_left(state.words, kept.words, given.floors, SAME, MEMORY_FALLING)
    if times == FOREVER and forever:
        return times
    times = min(times, most)
    if times > 0 and not boxes_go_on(state.machine, kept.machine, given.code, given.positions):
        times = 0
    if times > 0:
        move(state.words, kept.words, SAME, MEMORY_FALLING, times)
        move(state.words, kept.words, FALLING, MEMORY_MOVING, times)
    return times


@inline
def boxes_go_on(machine: Machine, kept: Machine, code: Code, positions: Numbers) -> bool:
    """Whether no load or store in progress will reach beyond its scratchpad, and writes and reads
    of the accumulator move like the walks that they follow. In the first periods after a new row
    they may not. What is elsewhere is never looked at again."""
    if (machine.load_steps.at != kept.load_steps.at and machine.load.queue != 0
            and code[positions[LOAD, machine.load.writing]].inside == 0):
        return False
    if (machine.store_steps.at != kept.store_steps.at and machine.store.queue != 0
            and code[positions[STORE, machine.store.reading]].inside == 0):
        return False
    load, store = (machine.load_steps.at - kept.load_steps.at,
                   machine.store_steps.at - kept.store_steps.at)
    write, before = machine.load_write, kept.load_write
    reads, before_reads = machine.store_beats, kept.store_beats
    return ((write.pending == 0 or write.at - before.at == load
             or code[write.position].in_acc == 0)
            and (write.back == 0 or write.back_at - before.back_at == load
                 or code[write.back_position].in_acc == 0)
            and (write.steps == 0 or write.first_at - before.first_at == load
                 or code[write.first_of].in_acc == 0)
            and (write.steps < 2 or write.second_at - before.second_at == load
                 or code[write.second_of].in_acc == 0)
            and (reads.steps == 0 or reads.front_at - before_reads.front_at == store
                 or code[reads.front_of].in_acc == 0)
            and (reads.steps < 2 or reads.back_at - before_reads.back_at == store
                 or code[reads.back_of].in_acc == 0))
