"""Skips cycles in which the memory side only streams or waits.

The twins say of each cycle what it changed (`twins.top.CHANGES`). If that is nothing but registers
that fall or move in equal steps, the cycle repeats until one of them reaches its floor. So nothing
needs to be saved and compared, as it does for periods of two cycles (`skip_repeats`).
"""

from __future__ import annotations

from ..llvm.decorators import inline
from ..twins.load.load import QUEUE_DEPTH as LOAD_QUEUE
from ..twins.record_types import Code, Machine, Settings, Unit, Wires
from ..twins.store.store import QUEUE_DEPTH as STORE_QUEUE
from ..twins.transfer import burst_walker
from . import skip_alu

FOREVER = skip_alu.FOREVER
FLUSHED = 4         # cycles after which all steps in flight are new ones. Before, their indices may
                    # be wrong, which matters in the accumulator alone


@inline
def requests_wait(machine: Machine, wires: Wires, config: Settings, timing: Settings) -> bool:
    """Whether no request can go on in the next cycle, and the same tokens are missing."""
    reader, writer, memory = machine.reader, machine.writer, machine.dram
    loads, stores, store = machine.load_rows, machine.store_rows, machine.store
    ar_waits = reader.arvalid == 0 or memory.reads == timing.reads
    aw_waits = writer.awvalid == 0 or memory.writes + memory.answers == timing.writes
    return (ar_waits and aw_waits and burst_walker.is_waiting(loads) and burst_walker.is_waiting(stores)
            and (loads.bursts | machine.fetch.waits == 0 or reader.ar_waits != 0
                 or reader.in_flight == config.reads_in_flight)
            and (stores.bursts == 0 or (stores.front_empty == 0 and (
                writer.awvalid != 0 or writer.in_flight == config.writes_in_flight)))
            and not (loads.held == 0 and machine.load_queue.ready != 0
                     and wires.load_wait == 0 and machine.load.queue != LOAD_QUEUE)
            and not (stores.held == 0 and machine.store_queue.ready != 0
                     and wires.store_wait == 0 and store.queue != STORE_QUEUE))


@inline
def repeat(machine: Machine, wires: Wires, code: Code, most: int, forever: bool) -> int:
    """Repeat the last cycle as often as its falling registers allow, at most `most` times. Returns
    how often, or FOREVER, without repeating it, if nothing ends that and `forever` is set."""
    memory, load, store = machine.dram, machine.load_steps, machine.store_steps
    times = FOREVER
    if wires.read_shown:                # the last beat of a burst is another one, and so on
        times = min(times, memory.beats_to_show - 1)
    if wires.read_was_due_in | memory.read_ready_in:
        times = min(times, memory.read_ready_in)
    if wires.w_taken:
        times = min(times, memory.beats_to_take - 1)
    if wires.answer_was_due_in | memory.answer_ready_in:
        times = min(times, memory.answer_ready_in)
    if wires.beat_sent:
        times = min(times, machine.writer.beats_to_send - 1)
    if wires.load_moved:
        times = min(times, _steps_in_run(load.left, wires.load_moved))
    if wires.store_moved:
        times = min(times, _steps_in_run(store.left, wires.store_moved))
    if times == FOREVER and forever:
        return times
    times = min(times, most)
    if times < FLUSHED and ((wires.load_moved and code[load.of].in_acc)
                            or (wires.store_moved and code[store.of].in_acc)):
        return 0
    memory.beats_to_show -= times * wires.read_shown
    memory.read_ready_in = max(0, memory.read_ready_in - times)
    memory.beats_to_take -= times * wires.w_taken
    memory.answer_ready_in = max(0, memory.answer_ready_in - times)
    machine.writer.beats_to_send -= times * wires.beat_sent
    if wires.load_moved:
        _move_load(machine, times, wires.load_moved, wires.load_stride)
    if wires.store_moved:
        _move_store(machine, times, wires.store_moved)
    machine.clock.now += times
    _count(machine.memory_counts, wires, times)
    return times


@inline
def _count(counts: Unit, wires: Wires, times: int) -> None:
    counts.cycles += times
    counts.load_busy += times * wires.load_busy
    counts.store_busy += times * wires.store_busy
    counts.load_wait_memory += times * wires.load_wait_memory
    counts.store_wait_memory += times * wires.store_wait_memory
    counts.load_bytes += times * wires.load_bytes
    counts.store_bytes += times * wires.store_bytes


@inline
def _steps_in_run(left: int, moved: int) -> int:
    """How many steps come before the last one of a run."""
    return left - 1 if moved == 1 else (left - 1) // moved


@inline
def _move_load(machine: Machine, times: int, moved: int, stride: int) -> None:
    """Steps that were under way have been replaced by the last ones."""
    write, steps = machine.load_write, machine.load_steps
    steps.left -= times * moved
    steps.at += times * stride
    at = steps.at
    if write.second:
        write.second_at = at = at - stride
    if write.first:
        write.first_at = at = at - stride
    if write.back:
        write.back_at = at = at - stride
    if write.pending:
        write.at = at - stride


@inline
def _move_store(machine: Machine, times: int, moved: int) -> None:
    beats, steps = machine.store_beats, machine.store_steps
    steps.left -= times * moved
    steps.at += times * moved
    if beats.back:
        beats.back_at = steps.at - moved
        beats.front_at = steps.at - 2 * moved
    else:
        beats.front_at = steps.at - moved
