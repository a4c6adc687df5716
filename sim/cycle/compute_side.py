"""Advances only GEMM and the ALU, while no instruction starts or ends.

Meanwhile GEMM just counts down, and the ALU is advanced cycle by cycle, or by whole periods while
it repeats its last cycle or its last two.
"""

from __future__ import annotations

from ...isa.instructions import Engine
from ..llvm.decorators import Blank, inline, noinline
from ..twins import accumulator, control, tokens
from ..twins.alu import alu
from ..twins.alu.alu_results import PLACES
from ..twins.record_types import Code, Machine, MicroOps, Numbers, Unit
from ..twins.top import (
    FALLING,
    FIRST_COUNTER,
    MEMORY_FALLING,
    MEMORY_MOVING,
    MEMORY_SAME,
    MOVING,
    SAME,
    WIRES,
)
from . import skip_alu, skip_alu_stream, skip_banks, skip_repeats
from .bundles import Given, Past, State

GEMM, ALU = int(Engine.GEMM), int(Engine.ALU)
FOREVER = skip_alu.FOREVER
LONGEST = 8             # pause between comparisons
blank_wires = Blank(WIRES)


@inline
def quiet_cycles(machine: Machine, code: Code, latency: int) -> int:
    """The number of cycles for which neither GEMM nor the ALU can start or end an instruction,
    unless one is dispatched or a load or store ends; possibly FOREVER. 0 if one of them may raise a
    fault."""
    return min(_quiet_gemm(machine), _quiet_alu(machine, code, latency))


@inline
def _quiet_gemm(machine: Machine) -> int:
    gemm, commands = machine.gemm, machine.gemm_queue
    if gemm.stop_at >= 0:
        return 0
    quiet = gemm.end_in if gemm.in_flight else FOREVER
    if commands.ready and tokens.missing_tokens(machine.tokens, GEMM, commands.wait) == 0:
        quiet = min(quiet, gemm.slots_left - 1 if gemm.running else 0)
    return quiet


@inline
def _quiet_alu(machine: Machine, code: Code, latency: int) -> int:
    sequencer, results, commands = machine.alu_sequencer, machine.alu_results, machine.alu_queue
    quiet, left = FOREVER, 0
    if results.begun:
        row = code[sequencer.of]
        if row.inside == 0:
            return 0
        if sequencer.running:
            left = 1 if row.no_work else (
                ((sequencer.outer_left - 1) * row.middle + sequencer.middle_left - 1) * row.inner
                + sequencer.inner_left)
        quiet = _steps_before_end(results, code, left)
        if results.results | results.arrives == 0:      # the next result has yet to arrive
            quiet += results.edge_in if results.edges else latency
    if commands.ready and tokens.missing_tokens(machine.tokens, ALU, commands.wait) == 0:
        quiet = min(quiet, max(left - 1, 0))
    return quiet


@inline
def _steps_before_end(results: Unit, code: Code, left: int) -> int:
    """How many results are written before the last one of an instruction, of which `left` steps
    have no ticket yet; 0 if one of them is out of range."""
    if results.begun == 1:
        return results.tickets + left - 1
    for number in range(results.tickets):
        place = (results.head + number) & PLACES - 1
        if code[results.of[place]].inside == 0:
            return 0
        if results.last[place]:
            return number
    return 0


@inline
def alu_banks(machine: Machine, code: Code) -> tuple[int, int]:
    """The accumulator banks that the ALU may access until it starts another instruction, and those
    that it may write."""
    results, banks, written = machine.alu_results, 0, 0
    if results.begun:
        row = code[machine.alu_sequencer.of]
        banks, written = row.banks, row.written_banks
    if results.begun > 1:
        for number in range(results.tickets):
            row = code[results.of[(results.head + number) & PLACES - 1]]
            banks |= row.banks
            written |= row.written_banks
    return banks, written


@noinline
def advance(state: State, past: Past, given: Given, uops: MicroOps, cycles: int) -> int:
    """Advance by a number of cycles in which nothing starts or ends. Returns how many of them were
    not skipped. Overwrites the compute side of the saved states."""
    machine, counters = state.machine, state.words[FIRST_COUNTER:]
    results = machine.alu_results
    steps = 0
    if machine.alu_sequencer.running | results.begun | machine.alu_issue.front:
        steps = _advance_alu(state, past, given, uops, cycles)
    else:
        machine.clock.now += cycles
        commands = machine.alu_queue
        if commands.ready:
            control.count_waits(counters, ALU, tokens.missing_tokens(
                machine.tokens, ALU, commands.wait), cycles)
    _advance_gemm(machine, counters, cycles)
    return steps


@inline
def _advance_gemm(machine: Machine, counters: Numbers, cycles: int) -> None:
    gemm, commands = machine.gemm, machine.gemm_queue
    waiting = cycles
    if gemm.running:
        waiting = max(0, cycles - gemm.slots_left + 1)
        gemm.slots_left = max(0, gemm.slots_left - cycles)
        gemm.running = gemm.slots_left != 0
    if waiting and commands.ready:
        control.count_waits(counters, GEMM, tokens.missing_tokens(
            machine.tokens, GEMM, commands.wait), waiting)
    if gemm.in_flight:
        gemm.end_in -= cycles
        machine.compute_counts.gemm_busy += cycles


@inline
def _advance_alu(state: State, past: Past, given: Given, uops: MicroOps, cycles: int) -> int:
    machine, words, saved = state.machine, state.words, past.words
    code, config, clock = given.code, given.config, machine.clock
    counters = words[FIRST_COUNTER:]
    end = clock.now + cycles
    newer, steps, hint_1, hint_2 = 0, 0, MEMORY_SAME, MEMORY_SAME
    pause, patience = 0, 1      # cycles without a comparison, longer each time that one is in vain
    saved[0, MEMORY_SAME] = saved[1, MEMORY_SAME] = -1
    while clock.now < end:
        if skip_alu_stream.skip(machine, given, uops, counters, end - clock.now):
            saved[0, MEMORY_SAME] = saved[1, MEMORY_SAME] = -1
            continue
        steps += 1
        wires = blank_wires()
        accumulator.arbitrate_compute(machine, wires, code, config, uops)
        alu.step(machine, wires, code, config, given.positions)
        machine.compute_counts.alu_busy += wires.alu_busy
        if wires.alu_wait:
            control.count_waits(counters, ALU, wires.alu_wait, 1)
        clock.now += 1
        if pause:
            pause -= 1
            continue
        number, period = newer, 1
        place = hint_1 = skip_repeats.difference(words, saved[newer], MEMORY_SAME, SAME, hint_1)
        if place != SAME:
            number, period = 1 - newer, 2
            place = hint_2 = skip_repeats.difference(words, saved[1 - newer], MEMORY_SAME, SAME,
                                                     hint_2)
        if place == SAME:
            before = State(past.machines[number], saved[number])
            times = _count_repeats(state, before, given, uops, (end - clock.now) // period, period)
            if times == 0:
                patience = min(2 * patience, LONGEST)
                pause = patience
                saved[0, MEMORY_SAME] = saved[1, MEMORY_SAME] = -1
                continue
            else:
                patience = 1
                skip_alu.renew_tickets(machine, before.machine, times)
                skip_repeats.move(words, before.words, MEMORY_FALLING, FALLING, times)
                skip_repeats.move(words, before.words, MEMORY_MOVING, MOVING, times)
                clock.now += times * period
                saved[0, MEMORY_SAME] = saved[1, MEMORY_SAME] = -1
        newer = 1 - newer
        _save(words, saved[newer])
        past.machines[newer].clock.now = clock.now
    return steps


@inline
def _save(flat: Numbers, saved: Numbers) -> None:
    saved[MEMORY_SAME:SAME] = flat[MEMORY_SAME:SAME]
    saved[MEMORY_FALLING:FALLING] = flat[MEMORY_FALLING:FALLING]
    saved[MEMORY_MOVING:MOVING] = flat[MEMORY_MOVING:MOVING]


@noinline
def _count_repeats(state: State, saved: State, given: Given, uops: MicroOps, most: int,
                   period: int) -> int:
    """How often, at most `most` times, the ALU will repeat its last period."""
    machine, before, code, config = state.machine, saved.machine, given.code, given.config
    times = min(most, skip_repeats.periods_left(state.words, saved.words, given.floors,
                                                MEMORY_FALLING, FALLING))
    if times > 0:
        times = skip_alu.even_steps(machine, before, code, config, times)
    if times > 0:
        times = skip_banks.alu_repeats(machine, before, code, config, uops, times, period)
    return times
