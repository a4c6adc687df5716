"""Skips repeated cycles.

When all `same` registers hold the values of a few cycles ago, the cycles since then are a period.
It repeats until a falling register reaches its floor, and all other registers advance in equal
steps (see `twins.registers`). A streaming burst has a period of one cycle; alternating reads and
writes on the bus have one of two. The registers are compared with those of the last cycle, of the
one before and, for longer periods, with a copy saved at growing intervals (Brent's method).

Two kinds of moving registers influence decisions. One is accumulator tiles: two engines may access
the same bank, or a step of the ALU may read a tile with a pending write. The other is the number of
the ALU's tickets, which may run out. `skip_banks` and `skip_alu` check that no such situation
begins or ends in the skipped cycles.
"""

from __future__ import annotations

from ...isa.instructions import Engine
from ..twins.record_types import Code, Machine, Numbers
from ..twins.registers import CHUNK, inline
from ..twins.top import FALLING, MEMORY_SAME, MOVING, SAME
from . import skip_alu, skip_banks
from .bundles import Given, State

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
FOREVER = skip_alu.FOREVER


@inline
def difference(flat: Numbers, saved: Numbers, begin: int, end: int, hint: int) -> int:
    """The index of a difference between `same` registers; `end` if there is none. The `hint`, where
    the last difference was, is tried first."""
    place = hint
    if place == end or _chunk_is_same(flat, saved, place):
        place = begin
        while place < end and _chunk_is_same(flat, saved, place):
            place += CHUNK
    return place


@inline
def _chunk_is_same(flat: Numbers, saved: Numbers, at: int) -> bool:
    """Compare without a branch per word, which would be slower."""
    differing = (flat[at] ^ saved[at] | flat[at + 1] ^ saved[at + 1] | flat[at + 2] ^ saved[at + 2]
                 | flat[at + 3] ^ saved[at + 3])
    return int(differing) == 0


@inline
def save(flat: Numbers, saved: Numbers) -> None:
    saved[:MOVING] = flat[:MOVING]


@inline
def save_memory(flat: Numbers, saved: Numbers) -> None:
    """Save what is compared of the memory side."""
    saved[:MEMORY_SAME] = flat[:MEMORY_SAME]


@inline
def memory_is_same(flat: Numbers, saved: Numbers) -> bool:
    """Whether what is compared of the memory side is as it was saved."""
    differing = 0
    for place in range(MEMORY_SAME):
        differing |= flat[place] ^ saved[place]
    return differing == 0


@inline
def forget(saved: Numbers) -> None:
    """Invalidate a saved state, so that none equals it."""
    for number in range(len(saved)):
        saved[number, 0] = saved[number, MEMORY_SAME] = -1


@inline
def periods_left(flat: Numbers, saved: Numbers, floors: Numbers, begin: int, end: int) -> int:
    """How often the period repeats before a falling register drops below its floor."""
    times = FOREVER
    for place in range(begin, end):
        value, step = flat[place], saved[place] - flat[place]
        if step < 0:
            return 0
        if step > 0:            # its last value in a period is one above the start of the next
            room = max(0, value - floors[place - SAME] + 1)
            times = min(times, room if step == 1 else room // step)     # division takes long
    return times


@inline
def move(flat: Numbers, saved: Numbers, begin: int, end: int, times: int) -> None:
    """Advance registers by a number of periods."""
    for place in range(begin, end):
        flat[place] += times * (flat[place] - saved[place])


@inline
def skip(state: State, saved: State, given: Given, most: int) -> int:
    """Skip all periods that repeat. Returns their number, or FOREVER, without skipping any, if
    nothing new will ever happen."""
    machine, before, code, config = state.machine, saved.machine, given.code, given.config
    times = periods_left(state.words, saved.words, given.floors, SAME, FALLING)
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
        move(state.words, saved.words, SAME, MOVING, times)
    return times


@inline
def boxes_go_on(machine: Machine, saved: Machine, code: Code, positions: Numbers) -> bool:
    """Whether all loads and stores in progress stay in range, and accesses to the accumulator
    advance like the indices they come from. In the first periods after a new row they may not.
    Indices of other scratchpads do not matter."""
    if (machine.load_steps.at != saved.load_steps.at and machine.load.queue != 0
            and code[positions[LOAD, machine.load.writing]].inside == 0):
        return False
    if (machine.store_steps.at != saved.store_steps.at and machine.store.queue != 0
            and code[positions[STORE, machine.store.reading]].inside == 0):
        return False
    load, store = (machine.load_steps.at - saved.load_steps.at,
                   machine.store_steps.at - saved.store_steps.at)
    write, before = machine.load_write, saved.load_write
    reads, before_reads = machine.store_beats, saved.store_beats
    return ((write.pending == 0 or write.at - before.at == load
             or code[write.position].in_acc == 0)
            and (write.back == 0 or write.back_at - before.back_at == load
                 or code[write.back_position].in_acc == 0)
            and (write.first == 0 or write.first_at - before.first_at == load
                 or code[write.first_of].in_acc == 0)
            and (write.second == 0 or write.second_at - before.second_at == load
                 or code[write.second_of].in_acc == 0)
            and (reads.front == 0 or reads.front_at - before_reads.front_at == store
                 or code[reads.front_of].in_acc == 0)
            and (reads.back == 0 or reads.back_at - before_reads.back_at == store
                 or code[reads.back_of].in_acc == 0))
