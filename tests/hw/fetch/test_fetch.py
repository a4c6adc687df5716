"""FETCH with a memory that answers at random times, and queues that are full at random times."""

import random
from dataclasses import replace

import pytest

from microtron.hw.fetch.fetch import BURST, Fetch
from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import (
    INSTRUCTION_BYTES,
    Alu,
    Engine,
    Gemm,
    Load,
    Requantize,
    Store,
    Sync,
    SyncAction,
)

from ..simulate import kept, simulate

BASE = 0x3000


class Memory:
    """Serves FETCH from a byte string; notes what was asked for."""

    def __init__(self, unit, content, rng, stall=0.3, error_at=None):
        self.unit, self.content, self.rng, self.stall = unit, content, rng, stall
        self.error_at, self.asked, self.pending = error_at, [], []

    async def run(self, ctx):
        unit, width = self.unit, self.unit.config.bus_bytes
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(unit.requests.ready, ready)
            show = bool(self.pending) and self.rng.random() >= self.stall
            ctx.set(unit.beats.valid, show)
            if show:
                address = self.pending[0]
                data = self.content[address - BASE:address - BASE + width]
                ctx.set(unit.beats.payload.data, int.from_bytes(data, "little"))
                ctx.set(unit.beats.payload.error, address - BASE == self.error_at)
                assert ctx.get(unit.beats.ready)
            request = unit.requests.payload
            taken = ready and ctx.get(unit.requests.valid)
            if taken:
                self.asked.append((ctx.get(request.address), ctx.get(request.beats) + 1))
            await ctx.tick()
            if show:
                self.pending.pop(0)
            if taken:
                address, beats = self.asked[-1]
                self.pending += [address + number * width for number in range(beats)]


def fetch(instructions, *, config=tiny, seed=0, stall=0.3, error_at=None, cycles=4000,
          raw=None, count=None):
    """What reached the queues, what FETCH asked for, and how it ended."""
    rng = random.Random(seed)
    unit = kept(Fetch, config)
    content = raw or b"".join(each.encode() for each in instructions)
    memory = Memory(unit, content, rng, stall, error_at)
    arrived, result = [], {}

    async def testbench(ctx):
        ctx.set(unit.base, BASE)
        ctx.set(unit.count, len(content) // INSTRUCTION_BYTES if count is None else count)
        await ctx.tick().repeat(2)
        ctx.set(unit.running, 1)
        for cycle in range(cycles):
            ctx.set(unit.idle, rng.random() < 0.2)
            for engine in Engine:
                queue = getattr(unit, engine.name.lower())
                ready = rng.random() >= stall
                ctx.set(queue.ready, ready)
                if ready and ctx.get(queue.valid):
                    arrived.append((engine, ctx.get(queue.payload.position),
                                    ctx.get(queue.payload.word), cycle))
            if ctx.get(unit.fault.cause) or ctx.get(unit.finished):
                result.update(cause=ctx.get(unit.fault.cause), cycle=cycle,
                              position=ctx.get(unit.fault.position))
                return
            await ctx.tick()

    simulate(unit, testbench, limit=cycles + 10, background=(memory.run,))
    return arrived, memory.asked, result


def some_program(rng, length):
    kinds = (Load(), Gemm(), Alu(), Requantize(), Store(segment=1), Sync(action=SyncAction.BARRIER))
    return [rng.choice(kinds) for _ in range(length)] + [Sync()]


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 70])
def test_every_instruction_reaches_its_engine_in_order(bus_bits, length):
    program = some_program(random.Random(length), length)
    arrived, asked, result = fetch(program, config=replace(tiny, bus_bits=bus_bits), seed=length)
    expected = [(each.engine, number, int.from_bytes(each.encode(), "little"))
                for number, each in enumerate(program) if each.engine is not None]
    assert [each[:3] for each in arrived] == expected
    assert result["cause"] == Fault.NONE
    assert sum(beats for _, beats in asked) * bus_bits // 8 == len(program) * INSTRUCTION_BYTES
    for address, beats in asked:
        assert address // 4096 == (address + beats * bus_bits // 8 - 1) // 4096
        assert beats * bus_bits // 8 <= BURST * INSTRUCTION_BYTES


def test_a_bus_as_wide_as_an_instruction_dispatches_one_a_cycle():
    program = [Gemm() for _ in range(40)] + [Sync()]
    arrived, _, _ = fetch(program, config=replace(tiny, bus_bits=256), stall=0)
    cycles = [each[3] for each in arrived]
    assert cycles == list(range(cycles[0], cycles[0] + 40))


def test_a_word_that_is_no_instruction_is_a_fault_at_its_position():
    program = [Load(), Gemm(), Store(segment=1), Sync()]
    raw = bytearray(b"".join(each.encode() for each in program))
    raw[2 * INSTRUCTION_BYTES] = 99
    arrived, _, result = fetch((), raw=bytes(raw))
    assert (result["cause"], result["position"], len(arrived)) == (Fault.ILLEGAL, 2, 2)
    raw[2 * INSTRUCTION_BYTES] = program[2].opcode
    raw[2 * INSTRUCTION_BYTES + 18] = 1             # a reserved byte
    _, _, result = fetch((), raw=bytes(raw))
    assert (result["cause"], result["position"]) == (Fault.ILLEGAL, 2)


def test_a_read_error_is_a_fault_at_the_instruction_it_hit():
    program = [Gemm() for _ in range(20)] + [Sync()]
    arrived, _, result = fetch(program, error_at=11 * INSTRUCTION_BYTES + 8)
    assert (result["cause"], result["position"], len(arrived)) == (Fault.READ_ERROR, 11, 11)


def test_a_program_without_end_is_a_fault():
    _, _, result = fetch([Gemm(), Load()])
    assert (result["cause"], result["position"]) == (Fault.NO_END, 2)


def test_an_empty_program_is_a_fault_and_reads_nothing():
    _, asked, result = fetch([Sync()], count=0)
    assert (result["cause"], asked) == (Fault.NO_END, [])
