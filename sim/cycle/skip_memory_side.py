"""Advances the memory side of the machine alone while the compute side repeats itself.

Most of what is new in a cycle is a burst or a row, which does not concern GEMM, the ALU, the queues
and the tokens. As long as each of their cycles repeats the one before, only FETCH, LOAD, STORE and
the bus are advanced, cycle by cycle or in periods of their own, and the rest catches up in one
step. The two sides meet again when an instruction is dispatched, or a load or store starts or ends.
"""

from __future__ import annotations

from ...isa.instructions import Engine
from ..llvm.decorators import Blank, inline, noinline
from ..twins import control
from ..twins.bus import dram
from ..twins.fetch import fetch
from ..twins.load import load_writer
from ..twins.record_types import Machine, MicroOps
from ..twins.store import store_reader
from ..twins.top import (
    FALLING,
    FIRST_COUNTER,
    MEMORY_FALLING,
    MEMORY_MOVING,
    MEMORY_SAME,
    MOVING,
    WIRES,
    commands,
    compute_is_idle,
    memory_cycle,
    news,
)
from . import skip_alu, skip_banks, skip_repeats
from .bundles import Given, Notes, Past, State
from .event_log import note

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
NEVER = -2
MOST_STEPS = 1 << 16    # of the memory side, before the loop decides anew
WORTH = 4               # cycles: for fewer, going apart takes longer than it saves
blank_wires = Blank(WIRES)


@inline
def horizon(state: State, kept: State, given: Given, uops: MicroOps) -> int:
    """For how many cycles the compute side, which has just repeated a cycle, will go on doing so
    whatever the memory side does; 0 if that is uncertain or too short, and possibly FOREVER."""
    machine, before, code, config = state.machine, kept.machine, given.code, given.config
    if not dram.is_calm(given.timing) or not _is_independent(machine, given):
        return 0
    times = skip_repeats.periods_left(state.words, kept.words, given.floors, MEMORY_FALLING,
                                      FALLING)
    if times >= WORTH:
        times = skip_alu.even_steps(machine, before, code, config, times)
    if times >= WORTH and not skip_banks.compute_conflicts_repeat(machine, before, code, config,
                                                                  times):
        times = min(times, skip_banks.alu_blocked_cycles(machine, before, code, config, uops))
    return times if times >= WORTH else 0


@inline
def _is_independent(machine: Machine, given: Given) -> bool:
    """Whether the two sides are independent until an instruction is dispatched, or a load or store
    starts or ends: FETCH is not waiting for the others to become idle, and LOAD and STORE do not
    use the accumulator."""
    load, store, code = machine.load, machine.store, given.code
    if (machine.control.caught | machine.control.seen | machine.fetch.finished
            | load.fault | store.fault or compute_is_idle(machine)):
        return False
    write, beats = machine.load_write, machine.store_beats
    if (write.pending and code[write.position].in_acc) or (
            write.back and code[write.back_position].in_acc):
        return False
    if (write.steps and code[write.first_of].in_acc) or (
            write.steps == load_writer.PLACES and code[write.second_of].in_acc):
        return False
    if (beats.steps and code[beats.front_of].in_acc) or (
            beats.steps == store_reader.PLACES and code[beats.back_of].in_acc):
        return False
    for number in range(load.queue):
        if code[given.positions[LOAD, load.writing + number]].in_acc:
            return False
    for number in range(store.queue):
        if code[given.positions[STORE, store.reading + number]].in_acc:
            return False
    return True


@noinline
def advance(state: State, past: Past, last: int, given: Given, notes: Notes, most: int,
            forever: bool) -> tuple[int, int]:
    """Advance the memory side until the sides meet, but by `most` cycles at most, and let the
    compute side, whose last cycle is kept as number `last`, catch up. `forever`: by itself, the
    compute side would never do anything else. Returns the load that ended in the last cycle, -1 if
    none did, or NEVER if nothing will ever happen again; and the number of cycles that were not
    skipped, at most MOST_STEPS."""
    machine, words, kept = state.machine, state.words, past.words
    code, config, positions = given.code, given.config, given.positions
    counters = words[FIRST_COUNTER:]
    passed, steps, newer, hint_1, hint_2 = 0, 0, last, 0, 0
    kept[1 - last, 0] = -1              # then the compute side may have been another
    asleep = fetch.is_asleep(machine, config, code)
    while True:
        number, period = newer, 1
        place = hint_1 = skip_repeats.difference(words, kept[newer], 0, MEMORY_SAME, hint_1)
        if place != MEMORY_SAME:
            number, period = 1 - newer, 2
            place = hint_2 = skip_repeats.difference(words, kept[1 - newer], 0, MEMORY_SAME, hint_2)
        periods = 0
        if place == MEMORY_SAME:
            periods = skip_repeats.skip_memory(state, State(past.machines[number], kept[number]),
                                               given, (most - passed) // period, forever)
            if periods == skip_repeats.FOREVER:
                return NEVER, steps
            passed += periods * period
        newer = 1 - newer
        if periods:
            kept[0, 0] = kept[1, 0] = -1
        else:
            skip_repeats.keep_memory(words, kept[newer])
        if passed == most or steps == MOST_STEPS or machine.load.fault | machine.store.fault:
            break
        steps += 1
        wires = blank_wires()
        fetches = not asleep or fetch.has_beat(machine.reader)
        memory_cycle(machine, wires, code, config, given.timing, positions, fetches)
        if news(wires) or wires.dispatched or wires.fetch_fault:
            _catch_up(state, State(past.machines[last], kept[last]), passed + 1)
            now = machine.clock.now
            overflow = commands(machine, counters, wires, code, config, positions)
            control.count_compute(machine.compute_counts, wires)
            control.step(machine, wires, overflow)
            note(wires, now, notes, counters)
            return wires.load_end, steps
        if wires.load_wait | wires.store_wait:
            control.count_waits(counters, LOAD, wires.load_wait)
            control.count_waits(counters, STORE, wires.store_wait)
        machine.clock.now += 1
        passed += 1
        if fetches:
            asleep = fetch.is_asleep(machine, config, code)
    _catch_up(state, State(past.machines[last], kept[last]), passed)
    return -1, steps


@inline
def _catch_up(state: State, kept: State, cycles: int) -> None:
    """Let the compute side repeat its last cycle."""
    skip_alu.renew_tickets(state.machine, kept.machine, cycles)
    skip_repeats.move(state.words, kept.words, MEMORY_FALLING, FALLING, cycles)
    skip_repeats.move(state.words, kept.words, MEMORY_MOVING, MOVING, cycles)
