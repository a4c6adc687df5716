"""Skips over stretches of cycles in which nothing new happens.

When the registers that are `same` are what they were a few cycles ago, those cycles have been a
period: they repeat until a falling register reaches its floor, and everything moves on in equal
steps (see `twins.registers`). A burst that streams has a period of one cycle, reads and writes
that take turns on the bus one of two. The registers are compared with those of the last cycle, of
the one before, and, for longer periods, with some that are kept anew after a growing number of
cycles (Brent's method).

Two moving things influence decisions. Tiles of the accumulator: two engines may want the same
bank, or a step of the ALU may read what another is going to write. And the number of the ALU's
tickets, of which there may be none left. `skip_banks` and `skip_alu` make sure that nothing of the
kind begins or ends within the stretch.
"""

from __future__ import annotations

from typing import Any

from ...isa.instructions import Engine
from ..twins.registers import CHUNK, inlined
from ..twins.top import FALLING, MEMORY_FALLING, MEMORY_MOVING, MEMORY_SAME, MOVING, SAME
from . import skip_alu, skip_banks

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
FOREVER = skip_alu.FOREVER


@inlined
def difference(flat: Any, kept: Any, begin: int, end: int, hint: int) -> Any:
    """Where something is not the same that must be; `end` if everything is. The `hint`, where it
    differed before, is looked at first."""
    place = hint
    if place == end or _chunk_is_same(flat, kept, place):
        place = begin
        while place < end and _chunk_is_same(flat, kept, place):
            place += CHUNK
    return place


@inlined
def _chunk_is_same(flat: Any, kept: Any, at: int) -> Any:
    """All at once: a branch for each would take longer."""
    return (flat[at] ^ kept[at] | flat[at + 1] ^ kept[at + 1] | flat[at + 2] ^ kept[at + 2]
            | flat[at + 3] ^ kept[at + 3]) == 0


@inlined
def keep(flat: Any, kept: Any) -> None:
    for place in range(MOVING):
        kept[place] = flat[place]


@inlined
def keep_memory(flat: Any, kept: Any) -> None:
    """The memory side only."""
    for place in range(MEMORY_SAME):
        kept[place] = flat[place]
    for place in range(SAME, MEMORY_FALLING):
        kept[place] = flat[place]
    for place in range(FALLING, MEMORY_MOVING):
        kept[place] = flat[place]


@inlined
def forget(kept: Any) -> None:
    """Let nothing be equal to what was kept."""
    for number in range(len(kept)):
        kept[number, 0] = kept[number, MEMORY_SAME] = -1


@inlined
def periods_left(flat: Any, kept: Any, floors: Any, begin: int, end: int) -> Any:
    """How often the period comes again before a falling register is below its floor."""
    times = FOREVER
    for place in range(begin, end):
        value, step = flat[place], kept[place] - flat[place]
        if step < 0:
            return 0
        if step > 0:            # its last value in a period is one above where the next begins
            times = min(times, max(0, value - floors[place - SAME] + 1) // step)
    return times


@inlined
def move(flat: Any, kept: Any, begin: int, end: int, times: int) -> None:
    """Let registers go on by so many periods."""
    for place in range(begin, end):
        flat[place] += times * (flat[place] - kept[place])


@inlined
def skip(machine: Any, kept_machine: Any, flat: Any, kept: Any, code: Any, config: Any,
         positions: Any, floors: Any, most: int) -> Any:
    """Let as many periods pass as nothing new happens in. Returns how many; FOREVER, and lets
    none pass, if nothing ever will."""
    times = periods_left(flat, kept, floors, SAME, FALLING)
    if times == FOREVER:
        return times
    times = min(times, most)
    if times > 0 and not boxes_go_on(machine, kept_machine, code, positions):
        times = 0
    if times > 0:
        times = skip_alu.even_steps(machine, kept_machine, code, config, times)
    if times > 0 and not skip_banks.stay_apart(machine, kept_machine, code, config, positions,
                                               times):
        times = 0
    if times > 0:
        skip_alu.renew_tickets(machine, kept_machine, times)
        move(flat, kept, SAME, MOVING, times)
    return times


@inlined
def skip_memory(machine: Any, kept_machine: Any, flat: Any, kept: Any, code: Any,
                positions: Any, floors: Any, most: int, forever: bool) -> Any:
    """The same for the memory side alone; `forever` if the compute side has nothing to come."""
    times = periods_left(flat, kept, floors, SAME, MEMORY_FALLING)
    if times == FOREVER and forever:
        return times
    times = min(times, most)
    if times > 0 and not boxes_go_on(machine, kept_machine, code, positions):
        times = 0
    if times > 0:
        move(flat, kept, SAME, MEMORY_FALLING, times)
        move(flat, kept, FALLING, MEMORY_MOVING, times)
    return times


@inlined
def boxes_go_on(machine: Any, kept: Any, code: Any, positions: Any) -> Any:
    """Whether no load or store that goes on will reach beyond its scratchpad, and the write of a
    load moves as its walk. It need not yet in the first period after a new row."""
    if (machine.load_steps.at != kept.load_steps.at and machine.load.queue != 0
            and code[positions[LOAD, machine.load.writing]].inside == 0):
        return False
    if (machine.store_steps.at != kept.store_steps.at and machine.store.queue != 0
            and code[positions[STORE, machine.store.reading]].inside == 0):
        return False
    return (machine.load_write.pending == 0 or machine.load_write.at - kept.load_write.at
            == machine.load_steps.at - kept.load_steps.at)
