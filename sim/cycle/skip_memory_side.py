"""Advances the two sides of the machine separately while they are independent.

Most changes in a cycle are a new burst or row, which does not affect GEMM, the ALU, the queues and
the tokens; and GEMM and the ALU affect nothing else in the middle of an instruction. So FETCH,
LOAD, STORE and the bus are advanced first, cycle by cycle or in periods of their own, and then the
compute side by as many cycles (`compute_side`). The two sides synchronize when an instruction is
dispatched, starts or ends.
"""

from __future__ import annotations

from typing import NamedTuple

from ...isa.instructions import Engine
from ..llvm.decorators import Blank, inline, noinline
from ..twins import control
from ..twins.bus import dram
from ..twins.fetch import command_queue, fetch
from ..twins.record_types import Machine, MicroOps, Numbers, Unit, Wires
from ..twins.top import (
    FIRST_COUNTER,
    WIRES,
    commands,
    compute_is_idle,
    memory_cycle,
    news,
)
from . import compute_side, skip_banks, skip_repeats, skip_streams
from .bundles import Given, Notes, Past, State
from .event_log import note
from .skip_streams import PERIOD

ENGINES = len(Engine)
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
NEVER = -2
MOST_STEPS = 1 << 16    # of the memory side, before returning to the main loop
WORTH = 4               # cycles: for fewer, separation costs more than it saves
blank_wires = Blank(WIRES)


@inline
def horizon(machine: Machine, given: Given) -> int:
    """For how many cycles the two sides are independent, unless the memory side dispatches, starts
    or ends an instruction; 0 if that is uncertain or not worth it, and possibly FOREVER."""
    if not dram.is_calm(given.timing) or _are_joined(machine):
        return 0
    cycles = compute_side.quiet_cycles(machine, given.code, given.config.alu_latency)
    if cycles < WORTH:
        return 0
    loads, stores = _load_banks(machine, given), _store_banks(machine, given)
    if loads | stores:
        touched, written = compute_side.alu_banks(machine, given.code)
        if loads & written or stores & (touched | skip_banks.gemm_banks(machine.gemm)):
            return 0
    return cycles


@inline
def _are_joined(machine: Machine) -> bool:
    """Whether a command is entering its queue, there is a fault, or FETCH may be waiting for the
    engines to become idle."""
    return (machine.load_queue.entering | machine.gemm_queue.entering | machine.alu_queue.entering
            | machine.store_queue.entering | machine.control.caught | machine.control.seen
            | machine.fetch.finished | machine.fetch.was_idle | machine.load.fault
            | machine.store.fault) != 0 or compute_is_idle(machine)


@inline
def _load_banks(machine: Machine, given: Given) -> int:
    """The accumulator banks that the loads in flight write."""
    load, write, code, banks = machine.load, machine.load_write, given.code, 0
    if write.pending:
        banks |= code[write.position].banks
    if write.back:
        banks |= code[write.back_position].banks
    if write.first:
        banks |= code[write.first_of].banks
    if write.second:
        banks |= code[write.second_of].banks
    for number in range(load.queue):
        banks |= code[given.positions[LOAD, load.writing + number]].banks
    return banks


@inline
def _store_banks(machine: Machine, given: Given) -> int:
    """The accumulator banks that the stores in flight read."""
    store, beats, code, banks = machine.store, machine.store_beats, given.code, 0
    if beats.front:
        banks |= code[beats.front_of].banks
    if beats.back:
        banks |= code[beats.back_of].banks
    for number in range(store.queue):
        banks |= code[given.positions[STORE, store.reading + number]].banks
    return banks


@inline
def _is_filling(machine: Machine, moves: int, given: Given) -> bool:
    """Whether LOAD has written to the accumulator in the last period, or soon will."""
    write, code = machine.load_write, given.code
    return ((write.pending != 0 and code[write.position].in_acc != 0)
            or (write.back != 0 and code[write.back_position].in_acc != 0)
            or (write.first != 0 and code[write.first_of].in_acc != 0)
            or (write.second != 0 and code[write.second_of].in_acc != 0)
            or (moves != 0 and code[given.positions[LOAD, machine.load.writing]].in_acc != 0))


@inline
def _settle_queues(machine: Machine) -> None:
    command_queue.settle(machine.load_queue)
    command_queue.settle(machine.gemm_queue)
    command_queue.settle(machine.alu_queue)
    command_queue.settle(machine.store_queue)


class Progress(NamedTuple):
    """Where the memory side is, in cycles since the sides were together. `noted`: how many states
    in a row have been saved, the last one in the place `newer`; NEVER if nothing will ever happen
    again. `turns`: the last cycle had requests, or the end of a burst or a run of steps."""

    passed: int
    newer: int
    noted: int
    turns: int


@noinline
def advance(state: State, past: Past, given: Given, uops: MicroOps, notes: Notes, most: int,
            forever: bool) -> tuple[int, int]:
    """Advance the memory side until the sides must synchronize, by at most `most` cycles, and then
    the compute side. `forever`: alone, the compute side would never start or end anything. Returns
    the load that ended in the last cycle, -1 if none did, or NEVER if nothing will ever happen
    again; and the number of cycles that were not skipped."""
    machine, words = state.machine, state.words
    code, config, positions = given.code, given.config, given.positions
    counters = words[FIRST_COUNTER:]
    steps, waits, since = 0, 0, 0
    progress = Progress(0, 0, 0, 0)
    rates = skip_streams.blank_rates()
    asleep = fetch.is_asleep(machine, config, code)
    contested = _load_banks(machine, given) & skip_banks.gemm_banks(machine.gemm) != 0
    while (progress.passed < most and steps < MOST_STEPS
           and machine.load.fault | machine.store.fault == 0):
        steps += 1
        wires = blank_wires()
        fetches = not asleep or fetch.has_beat(machine.reader)
        memory_cycle(machine, wires, code, config, given.timing, positions, uops, fetches,
                     contested)
        now_waits = wires.load_wait | wires.store_wait << ENGINES
        is_new = news(wires) or wires.dispatched or wires.fetch_fault
        if is_new or now_waits != waits:
            _count_waits(counters, waits, progress.passed - since)
            waits, since = now_waits, progress.passed
            progress = Progress(progress.passed, progress.newer, 0, progress.turns)
        if is_new:
            now = machine.clock.now
            steps += _catch_up(state, past, given, uops, progress.passed, 1)
            machine.clock.now = now
            overflow = commands(machine, counters, wires, code, config, positions)
            if wires.dispatched:
                _settle_queues(machine)
            control.count_compute(machine.compute_counts, wires)
            control.step(machine, wires, overflow)
            note(wires, now, notes, counters)
            return wires.load_end, steps
        machine.clock.now += 1
        if fetches:
            asleep = fetch.is_asleep(machine, config, code)
        progress = _skip_on(state, past, given, wires, rates, progress, waits, most, forever,
                            fetches, contested)
        if progress.noted == NEVER:
            _count_waits(counters, waits, progress.passed - since)
            return NEVER, steps
    _count_waits(counters, waits, progress.passed - since)
    steps += _catch_up(state, past, given, uops, progress.passed, 0)
    return -1, steps


@inline
def _count_waits(counters: Numbers, waits: int, cycles: int) -> None:
    """Count the cycles since the same tokens are missing."""
    if waits:
        control.count_waits(counters, LOAD, waits, cycles)
        control.count_waits(counters, STORE, waits >> ENGINES, cycles)


@inline
def _skip_on(state: State, past: Past, given: Given, wires: Wires, rates: Unit,
             progress: Progress, waits: int, most: int, forever: bool, fetches: bool,
             contested: bool) -> Progress:
    """Skip the cycles that repeat the one that has passed, or the last two."""
    machine, words, saved = state.machine, state.words, past.words
    config, newer, noted = given.config, progress.newer, progress.noted
    passed, before, turns = progress.passed + 1, progress.turns, wires.asked | wires.turned
    if (wires.hard | (turns if fetches else 0)) != 0 or (
            machine.load.fault | machine.store.fault) != 0:
        return Progress(passed, newer, 0, turns)
    if wires.fetched | wires.soft | wires.toggled == 0:
        noted, period = 0, 1
        goes_on = not (contested and _is_filling(machine, wires.load_moved, given))
    elif wires.fetched:
        noted, period = 0, 1
        goes_on = (wires.soft | wires.toggled | contested == 0
                   and wires.load_moved | wires.store_moved == 0
                   and fetch.has_beat(machine.reader)
                   and fetch.only_collects(machine, config, given.code))
    else:
        period = PERIOD
        goes_on = (noted >= PERIOD and wires.toggled != 0
                   and skip_repeats.memory_is_same(words, saved[1 - newer])
                   and not (contested and _is_filling(
                       machine, rates.load_moved[newer] | wires.load_moved, given)))
        newer = 1 - newer
        noted += 1
        skip_repeats.save_memory(words, saved[newer])
        turns |= before if goes_on else 0
    times = 0
    if goes_on or period == PERIOD:
        skip_streams.note_rates(rates, newer, wires)
    if goes_on:
        times = skip_streams.skip(machine, given, rates, newer, period, turns, waits,
                                  most - passed if period == 1 else (most - passed) // PERIOD,
                                  forever and wires.fetched == 0)
    if wires.fetched and times:
        fetch.collect(machine, config.bus_bytes, times)
    if times == skip_streams.FOREVER:
        return Progress(passed, newer, NEVER, turns)
    return Progress(passed + times * period, newer, noted, wires.asked | wires.turned)


@inline
def _catch_up(state: State, past: Past, given: Given, uops: MicroOps, passed: int,
              more: int) -> int:
    """Advance the compute side by the cycles that the memory side is ahead. Returns how many of
    them were not skipped."""
    state.machine.clock.now -= passed
    return compute_side.advance(state, past, given, uops, passed + more)
