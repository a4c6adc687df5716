"""Bursts that end while cycles are skipped, and their responses.

The end of a burst changes counters alone if nobody waits to request another one. Beats of the next
one then come in the same cycles, so several bursts are one stream.
"""

from __future__ import annotations

from typing import NamedTuple

from ..llvm.decorators import inline
from ..twins.bus.dram import BURSTS
from ..twins.bus.writer import BURSTS as SENT
from ..twins.record_types import Machine, Unit
from ..twins.store.store import AWAITED
from ..twins.transfer import burst_walker


class Takes(NamedTuple):
    """In which cycles memory takes beats: the first one, and how far apart they are."""

    first: int
    apart: int


@inline
def beats_to_show(machine: Machine, enough: int) -> int:
    """How many beats of one client come without a pause: those of this burst and, if each of them
    is taken when it is shown, of the next ones that are ready; no more bursts than `enough`."""
    memory, now = machine.dram, machine.clock.now
    beats, number = int(memory.beats_to_show), 1
    if beats > enough or beats <= 0 or not (
            machine.reader.arvalid | machine.fetch.waits | memory.rvalid == 0
            and not burst_walker.is_busy(machine.load_rows)):
        return beats
    while number < memory.reads and beats <= enough:
        place = (memory.reads_head + number) & BURSTS - 1
        if memory.read_client[place] != memory.rid or memory.read_ready[place] > now:
            return beats
        beats += memory.read_beats[place]
        number += 1
    return beats


@inline
def show(machine: Machine, beats: int) -> None:
    """Show some of these beats, and have them taken."""
    memory = machine.dram
    memory.beats_to_show -= beats
    while beats and memory.beats_to_show <= 0:
        memory.reads -= 1
        memory.reads_head = (memory.reads_head + 1) & BURSTS - 1
        memory.beats_to_show += memory.read_beats[memory.reads_head]
        machine.reader.in_flight -= 1


@inline
def beats_to_send(writer: Unit, enough: int) -> int:
    """How many beats of bursts that have been requested are yet to be sent; no more bursts than
    `enough`."""
    beats, number = int(writer.beats_to_send), 1
    while number < writer.lengths and beats <= enough:
        beats += writer.length[(writer.lengths_head + number) & SENT - 1]
        number += 1
    return beats


@inline
def send(writer: Unit, beats: int) -> None:
    """Send some of them."""
    writer.beats_to_send -= beats
    while beats and writer.beats_to_send <= 0:
        writer.lengths -= 1
        writer.lengths_head = (writer.lengths_head + 1) & SENT - 1
        writer.beats_to_send += writer.length[writer.lengths_head]


@inline
def _no_store_requests(machine: Machine) -> bool:
    return machine.writer.awvalid == 0 and not burst_walker.is_busy(machine.store_rows)


@inline
def beats_to_take(machine: Machine, enough: int, takes: Takes, latency: int) -> tuple[int, int]:
    """How many beats memory takes without a pause, of this burst and of the next ones; and the
    cycles before the first response to one of them."""
    memory = machine.dram
    beats, number = int(memory.beats_to_take), 1
    cycles = takes.first + (beats - 1) * takes.apart + latency - machine.clock.now
    if beats > enough or beats <= 0 or not _no_store_requests(machine):
        return beats, max(cycles, 0)
    while number < memory.writes and beats <= enough:
        beats += memory.write_beats[(memory.writes_head + number) & BURSTS - 1]
        number += 1
    return beats, max(cycles, 0)


@inline
def take(memory: Unit, beats: int, takes: Takes, latency: int, now: int) -> None:
    """Take some of these beats."""
    count = int(memory.beats_to_take)       # to the end of the burst
    memory.beats_to_take -= beats
    while beats and memory.beats_to_take <= 0:
        ready = takes.first + (count - 1) * takes.apart + latency
        memory.answer_ready[(memory.answers_head + memory.answers) & BURSTS - 1] = ready
        if memory.answers == 0:
            memory.answer_ready_in = ready - now
        memory.answers += 1
        memory.writes -= 1
        memory.writes_head = (memory.writes_head + 1) & BURSTS - 1
        memory.beats_to_take += memory.write_beats[memory.writes_head]
        count += memory.write_beats[memory.writes_head]


@inline
def responses(machine: Machine, cycles: int, period: int) -> tuple[int, int]:
    """How many of the next cycles pass, in whole periods, before a response that changes more than
    counters; and how many responses come in them, which take two cycles each. The responses of a
    store change only counters, except for the last one."""
    memory, store, now = machine.dram, machine.store, machine.clock.now
    first = int(memory.answer_ready_in)
    if first >= cycles or memory.answers == 0 or not (
            machine.writer.answered | memory.bvalid == 0 and _no_store_requests(machine)):
        return min(cycles, first), 0
    number, then, before, go_on = 0, now + first, 0, True
    while go_on:
        go_on = (then - now <= cycles - 2
                 and store.last[(store.head + number) & AWAITED - 1] == 0)
        if go_on:
            number += 1
            before = then
            then += 1
            go_on = number < memory.answers
            if go_on:
                then = max(then, memory.answer_ready[(memory.answers_head + number) & BURSTS - 1])
    if number < memory.answers:
        cycles = min(cycles, (then - now) // period * period)
    if number and before - now > cycles - 2:
        return first, 0
    return cycles, number


@inline
def answer(machine: Machine, number: int, cycles: int) -> None:
    """Let cycles pass, with as many responses."""
    memory, store = machine.dram, machine.store
    if number:
        memory.answers -= number
        memory.answers_head = (memory.answers_head + number) & BURSTS - 1
        machine.writer.in_flight -= number
        store.awaited -= number
        store.head = (store.head + number) & AWAITED - 1
        memory.answer_ready_in = memory.answer_ready[memory.answers_head] - machine.clock.now if (
            memory.answers) else 0
    memory.answer_ready_in = max(0, memory.answer_ready_in - cycles)
