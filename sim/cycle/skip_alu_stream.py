"""Skips cycles in which the ALU streams from the accumulator to the output scratchpad.

Such results never wait: a vector that goes to the lanes is written a fixed number of cycles later.
So all depends on the cycles in which the front step is granted its bank, that is, on GEMM alone,
whose reads are known in advance, and the state after any number of cycles follows from the steps
that were issued and from the cycles of the last ones. Requantize reads its parameters before each
outer iteration; these reads go the same way, but not to the lanes.
"""

from __future__ import annotations

from typing import NamedTuple

from ...isa.instructions import PARAMETER_TILES, Engine
from ..llvm.decorators import inline, noinline
from ..twins import control, tokens
from ..twins.alu import alu_results
from ..twins.alu.alu_results import OUT, PLACES
from ..twins.gemm import gemm
from ..twins.record_types import Code, Machine, MicroOps, Numbers, Settings, Unit
from . import skip_banks
from .bundles import Given

ALU = int(Engine.ALU)
LEAST = 3               # cycles: fewer are not worth it
AHEAD = 3               # entries that may lie between the front one and the last one of all
SCANNED = 64            # cycles of GEMM that are looked at together
FILLED = 40             # cycles after which nothing is left of the lanes' contents


class Entry(NamedTuple):
    """A read of parameters, or a step; both are entered into the ALU's queue in their order.
    `within` counts those of an outer iteration, `middle` and `inner` its steps."""

    outer: int
    within: int
    middle: int
    inner: int


class Stretch(NamedTuple):
    """How far some cycles bring the ALU: the front entry, whether one waits behind the next one,
    cycles until the lanes take another vector, and the cycles of the last issues, bit k for k
    cycles ago."""

    cycles: int
    number: int
    spare: int
    pause: int
    history: int


@inline
def skip(machine: Machine, given: Given, uops: MicroOps, counters: Numbers, cycles: int) -> int:
    """Skip some of the next cycles, in which no instruction starts or ends. Returns how many."""
    if cycles < LEAST or machine.alu_results.pending:
        return 0
    if machine.alu_sequencer.running == 0:
        issue = machine.alu_issue
        if issue.front | issue.next | issue.spare | issue.stopped:
            return 0
        return _drain(machine, given, counters, cycles)
    if not _may_stream(machine, given.code[machine.alu_sequencer.of]):
        return 0
    return _stream(machine, given, uops, cycles)


@inline
def _may_stream(machine: Machine, row: Settings) -> bool:
    """Whether all entries in the queue belong to one instruction that reads at most one operand,
    and none of them waits for another."""
    sequencer, issue = machine.alu_sequencer, machine.alu_issue
    return (row.to_out & row.inside != 0 and row.reads_right | row.no_work == 0
            and issue.front & issue.next != 0
            and issue.stopped | issue.left_read | issue.right_read == 0
            and issue.front_before | issue.next_before | issue.spare_before == 0
            and (issue.clear != 0) == (issue.pause == 0)
            and _next_number(sequencer, issue, row, _parameters(row)) >= 2 + issue.spare)


@inline
def _parameters(row: Settings) -> int:
    """How many reads of parameters come before the steps of an outer iteration."""
    return PARAMETER_TILES if row.requantize else 0


@inline
def _next_number(sequencer: Unit, issue: Unit, row: Settings, parameters: int) -> int:
    """The number of the next entry."""
    step = (row.middle - sequencer.middle_left) * row.inner + row.inner - sequencer.inner_left
    return ((row.outer - sequencer.outer_left) * (parameters + row.middle * row.inner)
            + (parameters + step if step else issue.parameter))


@inline
def _entry(row: Settings, parameters: int, number: int) -> Entry:
    outer, within = divmod(number, parameters + row.middle * row.inner)
    middle, inner = divmod(max(0, within - parameters), row.inner)
    return Entry(outer, within, middle, inner)


@inline
def _tile(row: Settings, parameters: int, entry: Entry) -> int:
    """The accumulator tile that an entry reads."""
    if entry.within < parameters:
        return int(row.rhs + entry.outer * row.rhs_outer + entry.within)
    return int(row.lhs + entry.outer * row.lhs_outer + entry.middle * row.lhs_middle
               + entry.inner * row.lhs_inner)


@noinline
def _stream(machine: Machine, given: Given, uops: MicroOps, most: int) -> int:
    sequencer, issue, results = machine.alu_sequencer, machine.alu_issue, machine.alu_results
    row, latency = given.code[sequencer.of], given.config.alu_latency
    parameters = _parameters(row)
    first, spare, history = (_next_number(sequencer, issue, row, parameters), int(issue.spare),
                             alu_results.history(results, latency))
    if not alu_results.follows(results, history, latency):
        return 0
    done = _issue(machine, given.code, given.config, uops, most,
                  Stretch(0, first - 2 - spare, spare, int(issue.pause), history))
    if done.cycles == 0:
        return 0
    to = done.number + 2 + done.spare
    entered = _count_steps(row, parameters, to) - _count_steps(row, parameters, first)
    issued = (_count_steps(row, parameters, done.number)
              - _count_steps(row, parameters, first - 2 - spare))
    _enter_tickets(results, sequencer.of, entered)
    alu_results.set_lanes(results, done.history, latency, issued)
    _set_queue(issue, row, parameters, done)
    _set_sequencer(sequencer, issue, row, parameters, _entry(row, parameters, to))
    machine.clock.now += done.cycles
    machine.compute_counts.alu_busy += done.cycles
    return done.cycles


@inline
def _count_steps(row: Settings, parameters: int, number: int) -> int:
    """How many of the first entries are steps."""
    if parameters == 0:
        return number
    outer, within = divmod(number, parameters + row.middle * row.inner)
    return outer * row.middle * row.inner + max(0, within - parameters)


@noinline
def _issue(machine: Machine, code: Code, config: Settings, uops: MicroOps, most: int,
           begin: Stretch) -> Stretch:
    """Issue entries for some cycles."""
    row, engine = code[machine.alu_sequencer.of], machine.gemm
    parameters, bits, mask = _parameters(row), config.acc_bank_bits, (2 << config.alu_latency) - 1
    passed, number, spare, pause, history = (begin.cycles, begin.number, begin.spare, begin.pause,
                                             begin.history)
    entry = _entry(row, parameters, number)
    last = row.outer * (parameters + row.middle * row.inner) - 1 - AHEAD
    alone = skip_banks.gemm_banks(engine) & row.banks == 0      # also if nothing is read
    free, free_bank = 0, 0
    while passed < most and number < last:
        if pause:
            cycles = min(pause, most - passed)
            passed, pause, spare, history = (passed + cycles, pause - cycles, 1,
                                             history << cycles & mask)
            free = max(0, free - cycles)
            continue
        tile = _tile(row, parameters, entry)
        bank = tile >> bits
        if alone:
            free = most - passed
        elif free == 0 or bank != free_bank:
            issued = machine.clock.now + passed - config.gemm_read_stage
            free, free_bank = gemm.count_alike(engine, code, config, uops, issued, True, 1 << bank,
                                               False, min(SCANNED, most - passed)), bank
            if free == 0:
                cycles = gemm.count_alike(engine, code, config, uops, issued, True, 1 << bank,
                                          True, most - passed)
                if cycles == 0:
                    break
                passed, spare, history = (passed + cycles, 1,
                                          history << min(cycles, FILLED) & mask)
                continue
        taken = 1
        if entry.within < parameters:
            history = history << 1 & mask
        elif config.vector_cycles > 1:
            history, pause = history << 1 & mask | 1, config.vector_cycles - 1
        else:
            taken = min(free, most - passed, last - number, row.inner - entry.inner)
            if tile + (taken - 1) * row.lhs_inner >> bits != bank:
                taken = 1
            shift = min(taken, FILLED)
            history = (history << shift | (1 << shift) - 1) & mask
        passed, number, spare, free = passed + taken, number + taken, 0, free - taken
        entry = _move_on(row, parameters, entry, taken)
    return Stretch(passed, number, spare, pause, history)



@inline
def _move_on(row: Settings, parameters: int, entry: Entry, steps: int) -> Entry:
    """The entry that comes next, or some steps later in the same inner loop."""
    outer, within, middle, inner = entry.outer, entry.within + steps, entry.middle, entry.inner
    if within > parameters:
        inner += steps
        if inner == row.inner:
            inner = 0
            middle += 1
            if middle == row.middle:
                middle = within = 0
                outer += 1
    return Entry(outer, within, middle, inner)





@inline
def _enter_tickets(results: Unit, position: int, steps: int) -> None:
    """Allocate the tickets of steps, of which only the last ones remain. Nobody asks for the tiles
    in the output scratchpad."""
    free = results.head + results.tickets
    for number in range(max(0, steps - PLACES), steps):
        place = free + number & PLACES - 1
        results.of[place], results.kind[place] = position, OUT
        results.last[place] = results.outside[place] = 0
    results.tickets += steps
    results.entered += steps


@inline
def _set_queue(issue: Unit, row: Settings, parameters: int, done: Stretch) -> None:
    """Set the entries that wait."""
    entry, reads = _entry(row, parameters, done.number), int(row.reads_left)
    fetches, tile = entry.within < parameters, _tile(row, parameters, entry)
    issue.front_fetches = issue.front_reads_right = fetches
    issue.front_reads_left = reads if not fetches else 0
    issue.front_left = issue.front_right = tile
    entry = _move_on(row, parameters, entry, 1)
    fetches, tile = entry.within < parameters, _tile(row, parameters, entry)
    issue.next_fetches = issue.next_reads_right = fetches
    issue.next_reads_left = reads if not fetches else 0
    issue.next_left = issue.next_right = tile
    if done.spare:
        entry = _move_on(row, parameters, entry, 1)
        fetches, tile = entry.within < parameters, _tile(row, parameters, entry)
        issue.spare_fetches = issue.spare_reads_right = fetches
        issue.spare_reads_left = reads if not fetches else 0
        issue.spare_left = issue.spare_right = tile
    issue.spare, issue.pause, issue.clear = done.spare, done.pause, done.pause == 0


@inline
def _set_sequencer(sequencer: Unit, issue: Unit, row: Settings, parameters: int,
                   entry: Entry) -> None:
    """Set the next entry."""
    issue.parameter = entry.within if entry.within <= parameters else 0
    sequencer.outer_left = row.outer - entry.outer
    sequencer.middle_left = row.middle - entry.middle
    sequencer.inner_left = row.inner - entry.inner
    dst = sequencer.dst_of_middle = row.dst + entry.outer * row.dst_outer
    dst = sequencer.dst_of_inner = dst + entry.middle * row.dst_middle
    sequencer.dst = dst + entry.inner * row.dst_inner
    lhs = sequencer.lhs_of_middle = row.lhs + entry.outer * row.lhs_outer
    lhs = sequencer.lhs_of_inner = lhs + entry.middle * row.lhs_middle
    sequencer.lhs = lhs + entry.inner * row.lhs_inner
    rhs = sequencer.rhs_of_middle = row.rhs + entry.outer * row.rhs_outer
    rhs = sequencer.rhs_of_inner = rhs + entry.middle * row.rhs_middle
    sequencer.rhs = rhs + entry.inner * row.rhs_inner


@inline
def _drain(machine: Machine, given: Given, counters: Numbers, cycles: int) -> int:
    """Skip cycles in which the last vectors leave the lanes."""
    results, issue, latency = machine.alu_results, machine.alu_issue, given.config.alu_latency
    history = alu_results.history(results, latency)
    if not alu_results.follows(results, history, latency):
        return 0
    alu_results.set_lanes(results, history << min(cycles, FILLED) & (2 << latency) - 1, latency, 0)
    issue.pause = max(0, issue.pause - cycles)
    issue.clear = 0
    machine.clock.now += cycles
    machine.compute_counts.alu_busy += cycles
    commands = machine.alu_queue
    if commands.ready:
        control.count_waits(counters, ALU, tokens.missing_tokens(
            machine.tokens, ALU, commands.wait), cycles)
    return cycles
