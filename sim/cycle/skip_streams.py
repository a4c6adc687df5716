"""Skips cycles in which the memory side only streams or waits.

The twins say of each cycle what it changed (`twins.top.CHANGES`). If that is nothing but registers
that fall or move in equal steps, the cycle repeats until one of them reaches its floor, and so do
two cycles in which the bus takes turns, if the other registers are then as before. A new burst or
row does not end this if the same beats and steps go on after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...isa.instructions import Engine
from ..llvm.decorators import Blank, inline, noinline
from ..twins.load import load_writer
from ..twins.load.load import QUEUE_DEPTH as LOAD_QUEUE
from ..twins.record_types import Code, Machine, Settings, Unit, Wires
from ..twins.store.store import QUEUE_DEPTH as STORE_QUEUE
from ..twins.transfer import burst_walker
from . import skip_alu, skip_bursts
from .bundles import Given

FOREVER = skip_alu.FOREVER
ENGINES = len(Engine)
LOAD_WAITS = (1 << ENGINES) - 1      # in a set of missing tokens of LOAD and, above it, of STORE
PERIOD = 2              # cycles, of a bus that takes turns
FLUSHED = 4         # cycles after which all steps in flight are new ones. Before, their indices may
                    # be wrong, which matters in the accumulator alone


class Rates(NamedTuple):
    """By how much registers fall or move in a period; `…_was_due`: whether a wait went on."""

    shown: int              # beats
    taken: int
    taken_last: int         # in the last cycle alone
    sent: int
    read_was_due: int
    answer_was_due: int
    load_moved: int         # by the steps
    load_strides: int
    load_stride: int        # of one step
    load_kinds: int
    store_moved: int
    store_stride: int
    load_busy: int
    store_busy: int
    load_waits: int
    store_waits: int
    load_bytes: int
    store_bytes: int


blank_rates = Blank(np.dtype([(name, np.int64, (2,)) for name in Rates._fields]))


@inline
def note_rates(rates: Unit, place: int, wires: Wires) -> None:
    """Note those of the last cycle."""
    rates.shown[place], rates.taken[place] = wires.read_shown, wires.w_taken
    rates.sent[place] = wires.beat_sent
    rates.read_was_due[place] = wires.read_was_due_in
    rates.answer_was_due[place] = wires.answer_was_due_in
    rates.load_moved[place], rates.load_strides[place] = wires.load_moved, wires.load_stride
    rates.load_kinds[place], rates.store_moved[place] = wires.load_kind, wires.store_moved
    rates.load_busy[place], rates.store_busy[place] = wires.load_busy, wires.store_busy
    rates.load_waits[place] = wires.load_wait_memory
    rates.store_waits[place] = wires.store_wait_memory
    rates.load_bytes[place], rates.store_bytes[place] = wires.load_bytes, wires.store_bytes


@inline
def _of_last(rates: Unit, last: int) -> Rates:
    """Those of the last cycle, which is noted in this place."""
    return Rates(
        rates.shown[last], rates.taken[last], rates.taken[last], rates.sent[last],
        rates.read_was_due[last], rates.answer_was_due[last], rates.load_moved[last],
        rates.load_strides[last], rates.load_strides[last], rates.load_kinds[last],
        rates.store_moved[last], rates.store_moved[last], rates.load_busy[last],
        rates.store_busy[last], rates.load_waits[last], rates.store_waits[last],
        rates.load_bytes[last], rates.store_bytes[last])


@inline
def _sum(one: Rates, last: Rates) -> Rates:
    """Those of the last two cycles together."""
    return Rates(
        one.shown + last.shown, one.taken + last.taken, last.taken, one.sent + last.sent,
        one.read_was_due | last.read_was_due, one.answer_was_due | last.answer_was_due,
        one.load_moved + last.load_moved, one.load_strides + last.load_strides,
        max(one.load_stride, last.load_stride), one.load_kinds | last.load_kinds,
        one.store_moved + last.store_moved, max(one.store_stride, last.store_stride),
        one.load_busy + last.load_busy, one.store_busy + last.store_busy,
        one.load_waits + last.load_waits, one.store_waits + last.store_waits,
        one.load_bytes + last.load_bytes, one.store_bytes + last.store_bytes)


@inline
def requests_wait(machine: Machine, waits: int, config: Settings, timing: Settings) -> bool:
    """Whether no request can go on in the next cycle, no instruction can start, and the same tokens
    are missing: those of the last cycle, LOAD's and STORE's."""
    reader, writer, memory = machine.reader, machine.writer, machine.dram
    loads, stores, store = machine.load_rows, machine.store_rows, machine.store
    ar_waits = reader.arvalid == 0 or memory.reads == timing.reads
    aw_waits = writer.awvalid == 0 or memory.writes + memory.answers == timing.writes
    return (ar_waits and aw_waits
            and burst_walker.is_waiting(loads) and burst_walker.is_waiting(stores)
            and (loads.bursts | machine.fetch.waits == 0 or reader.ar_waits != 0
                 or reader.in_flight == config.reads_in_flight)
            and (stores.bursts == 0 or (stores.front_empty == 0 and (
                writer.awvalid != 0 or writer.in_flight == config.writes_in_flight)))
            and not (loads.held == 0 and machine.load_queue.ready != 0
                     and waits & LOAD_WAITS == 0 and machine.load.queue != LOAD_QUEUE)
            and not (stores.held == 0 and machine.store_queue.ready != 0
                     and waits >> ENGINES == 0 and store.queue != STORE_QUEUE))


@noinline
def skip(machine: Machine, given: Given, rates: Unit, last: int, period: int, turns: int,
         waits: int, most: int, forever: bool) -> int:
    """Skip all periods of one or two cycles that repeat, if the last one changed nothing but noted
    registers. `rates` are noted, those of the last cycle in the place `last`; `turns`: it did
    change noted registers. Returns how often it repeats, at most `most` times, or FOREVER, without
    repeating it, if nothing ends that and `forever` is set."""
    of_period = _of_last(rates, last)
    if period == PERIOD:
        of_period = _sum(_of_last(rates, 1 - last), of_period)
    if turns and not (requests_wait(machine, waits, given.config, given.timing)
                      and data_go_on(machine, of_period, given.code)):
        return 0
    return _repeat(machine, of_period, given.code, given.timing, period, most, forever)


@inline
def data_go_on(machine: Machine, rates: Rates, code: Code) -> bool:
    """Whether the same beats and steps go on after a burst or a run of steps has ended."""
    memory, writer, beats = machine.dram, machine.writer, machine.store_beats
    load, store = machine.load_steps, machine.store_steps
    reads = memory.reads != 0 and memory.read_ready_in == 0
    return (writer.answered == 0
            and (reads and memory.read_client[memory.reads_head] == memory.rid
                 if rates.shown else not reads or memory.rvalid != 0)
            and (memory.writes != 0 if rates.taken else
                 writer.wvalid == 0 or memory.writes == 0)
            and (writer.lengths != 0 if rates.sent else (
                writer.lengths == 0 or beats.beats == 0 or writer.wvalid != 0))
            and (memory.answers == 0 or memory.answer_ready_in != 0 or memory.bvalid != 0)
            and (rates.load_kinds == load_writer.next_kind(load) and code[load.of].lanes == 1
                 if rates.load_moved else
                 machine.load.queue == 0 or machine.load_write.second != 0)
            and (code[store.of].lanes == 1 and code[store.of].in_acc == 0
                 if rates.store_moved else machine.store.queue == 0 or beats.back != 0))


@inline
def _repeat(machine: Machine, rates: Rates, code: Code, timing: Settings, period: int, most: int,
            forever: bool) -> int:
    """Repeat the last period as often as falling registers allow."""
    memory, load, store = machine.dram, machine.load_steps, machine.store_steps
    writer, now, latency = machine.writer, machine.clock.now, timing.write_latency
    times = most                        # the last beat or step is another one than those before
    if rates.load_moved:
        times = min(times, _count_before(_load_steps(load, code[load.of], rates.load_kinds),
                                         rates.load_moved))
    if rates.store_moved:
        times = min(times, _count_before(_store_steps(store, code[store.of]), rates.store_moved))
    if rates.read_was_due | memory.read_ready_in:
        times = min(times, memory.read_ready_in >> period - 1)
    if rates.shown:
        times = min(times, _count_before(
            skip_bursts.beats_to_show(machine, times * rates.shown), rates.shown))
    if rates.sent:
        times = min(times, _count_before(
            skip_bursts.beats_to_send(writer, times * rates.sent), rates.sent))
    apart = period if rates.taken == 1 else 1
    takes = skip_bursts.Takes(now + (rates.taken_last * (apart - 1)), apart)
    if rates.taken:
        beats, cycles = skip_bursts.beats_to_take(machine, times * rates.taken, takes, latency)
        times = min(times, _count_before(beats, rates.taken), cycles >> period - 1)
    answered = 0
    if rates.answer_was_due | memory.answer_ready_in:
        cycles, answered = skip_bursts.responses(machine, times * period, period)
        times = min(times, cycles >> period - 1)
    elif (forever and rates.read_was_due | memory.read_ready_in | rates.shown | rates.taken
          | rates.sent | rates.load_moved | rates.store_moved == 0):
        return FOREVER
    if times <= 0 or (times < FLUSHED and ((rates.load_moved and code[load.of].in_acc)
                                           or (rates.store_moved and code[store.of].in_acc))):
        return 0
    memory.read_ready_in = max(0, memory.read_ready_in - times * period)
    skip_bursts.show(machine, times * rates.shown)
    skip_bursts.send(writer, times * rates.sent)
    skip_bursts.take(memory, times * rates.taken, takes, latency, now)
    skip_bursts.answer(machine, answered, times * period)
    if rates.load_moved:
        _move_load(machine, code[load.of], times * rates.load_moved, times * rates.load_strides,
                   rates.load_stride)
    if rates.store_moved:
        _move_store(machine, code[store.of], times * rates.store_moved, rates.store_stride)
    machine.clock.now += times * period
    _count(machine.memory_counts, rates, times, times * period)
    return times


@inline
def _load_steps(load: Unit, box: Settings, kinds: int) -> int:
    """How many steps of a load are alike. Its rows follow one another, if nothing is between."""
    if box.lanes == 1 and box.left | box.right == 0 and kinds == load_writer.DATA:
        return load.left + (load.rows_left - 1) * box.tiles * box.parts
    return int(load.left)


@inline
def _store_steps(store: Unit, box: Settings) -> int:
    """The same of a store. Where it reads the accumulator, indices matter, which jump."""
    if box.lanes == 1 and box.in_acc == 0:
        return store.left + (store.rows_left - 1) * box.tiles * box.parts
    return int(store.left)


@inline
def _count_before(left: int, moved: int) -> int:
    """How many periods come before the one with the last step."""
    return left - 1 if moved == 1 else (left - 1) // moved


@inline
def _count(counts: Unit, rates: Rates, times: int, cycles: int) -> None:
    counts.cycles += cycles
    counts.load_busy += times * rates.load_busy
    counts.store_busy += times * rates.store_busy
    counts.load_wait_memory += times * rates.load_waits
    counts.store_wait_memory += times * rates.store_waits
    counts.load_bytes += times * rates.load_bytes
    counts.store_bytes += times * rates.store_bytes


@inline
def _move_load(machine: Machine, box: Settings, moved: int, strides: int, stride: int) -> None:
    """Steps that were under way have been replaced by the last ones."""
    write, steps = machine.load_write, machine.load_steps
    steps.left -= moved
    steps.at += strides
    if steps.left <= 0:
        row = box.tiles * box.parts
        rows = 1 + -steps.left // row
        steps.left += rows * row
        steps.rows_left -= rows
        steps.row_place += rows * box.row_stride
    at = int(steps.at)
    if write.second:
        write.second_at = at = at - stride
    if write.first:
        write.first_at = at = at - stride
    if write.back:
        write.back_at = at = at - stride
    if write.pending:
        write.at = at - stride


@inline
def _move_store(machine: Machine, box: Settings, moved: int, stride: int) -> None:
    beats, steps = machine.store_beats, machine.store_steps
    steps.left -= moved
    steps.at += moved
    if steps.left <= 0:
        row = box.tiles * box.parts
        rows = 1 + -steps.left // row
        steps.left += rows * row
        steps.rows_left -= rows
        steps.row_at += rows * box.row_pitch * box.parts
        steps.row_place += rows * box.row_stride
        steps.at = steps.row_at + row - steps.left
    if beats.back:
        beats.back_at = steps.at - stride
        beats.front_at = steps.at - 2 * stride
    else:
        beats.front_at = steps.at - stride
