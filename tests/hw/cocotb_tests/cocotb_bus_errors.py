"""SLVERR and DECERR from memory, in answer to what the accelerator reads and writes."""

from dataclasses import replace

import cocotb
import numpy as np
from cocotb_cases import (
    ALL_STORED,
    BEFORE,
    DATA_BYTES,
    OTHER,
    PARTLY,
    SIZE,
    STORE,
    TILES,
    WRONG,
    BusError,
    Case,
    assert_fails,
    check,
    prepared,
    program_of,
    tried,
)
from cocotbext.axi import AxiResp

from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import INSTRUCTION_BYTES, Buffer, Load, Store
from microtron.isa.program import Access
from microtron.isa.registers import Status
from microtron.isa.stream import decode
from microtron.sim.functional.memory import Memory
from microtron.testing.random_programs import random_program

ERRORS = (AxiResp.SLVERR, AxiResp.DECERR)
BEAT = tiny.bus_bytes
LOAD = Load(buffer=Buffer.ACC8, segment=OTHER, shape=(1, 1, TILES))


@cocotb.test()
async def in_answer_to_a_load(dut):
    bench = await prepared(dut, 11)
    for response in ERRORS:
        for first, size in tried(((0, SIZE), (SIZE - 1, 1), (bench.rng.randrange(SIZE), 1))):
            error = BusError(segment=OTHER, first=first, size=size, response=response)
            await check(bench, Case(cause=Fault.READ_ERROR, words=(LOAD,)), error)
        # Of four that are all under way, the second.
        await check(bench, Case(cause=Fault.READ_ERROR, words=(Load(), LOAD, Load(), Load()),
                                after=1), error)


@cocotb.test()
async def in_answer_to_fetch(dut):
    """Which reads ahead: nothing may fail before its turn, nor what is never executed."""
    bench = await prepared(dut, 12)
    for response in ERRORS:
        for beat in (0, INSTRUCTION_BYTES // BEAT - 1):
            first = WRONG * INSTRUCTION_BYTES + beat * BEAT
            await check(bench, Case(cause=Fault.READ_ERROR),
                        BusError(segment=None, first=first, response=response))
    program = program_of()
    behind = len(program.code) * INSTRUCTION_BYTES          # more instructions, after the end
    program = replace(program, code=np.concatenate([program.code, program.code]))
    await bench.load(program, BEFORE)
    BusError(segment=None, first=behind, size=behind).arrange(bench)
    await bench.start()
    assert await bench.stopped() == Status.DONE | Status.INTERRUPT
    assert max(beat.start for beat in bench.memory.beats_read) > bench.code + behind
    bench.assert_memory((DATA_BYTES, ALL_STORED, BEFORE[OTHER]))


@cocotb.test()
async def in_answer_to_a_store(dut):
    bench = await prepared(dut, 13)
    for response in ERRORS:
        for first, size in tried(((0, SIZE), (SIZE - 1, 1), (bench.rng.randrange(SIZE), 1))):
            error = BusError(segment=OTHER, first=first, size=size, writes=True, response=response)
            await check(bench, Case(cause=Fault.WRITE_ERROR, words=(STORE,), other=PARTLY), error)
        # Of four that are all under way, the second.
        words = (Store(segment=OTHER), Store(segment=OTHER, sram=2, offset=8), STORE, STORE)
        await check(bench, Case(cause=Fault.WRITE_ERROR, words=words, after=1, other=PARTLY),
                    BusError(segment=OTHER, first=8, writes=True, response=response))


@cocotb.test()
async def in_the_midst_of_random_programs(dut):
    """Where a segment fails altogether, the first instruction that touches it does."""
    bench = await prepared(dut, 14)
    for number in tried(range(6)):
        program = random_program(tiny, 5000 + number, length=20)
        kind = (Load, Store)[number % 2]
        position, segment = bench.rng.choice(first_touches(program, kind))
        error = BusError(segment=segment, first=0, size=program.segments[segment].size,
                         writes=kind is Store, response=bench.rng.choice(ERRORS))
        contents = Memory(program).segments
        await bench.load(program, contents)
        error.arrange(bench)
        await bench.start()
        cause = Fault.WRITE_ERROR if kind is Store else Fault.READ_ERROR
        await assert_fails(bench, cause, position, [
            None if each.access == Access.WRITE else content
            for each, content in zip(program.segments, contents, strict=True)])


def first_touches(program, kind):
    """The first load or store of each segment that has one, as (position, segment)."""
    first = {}
    for position, each in enumerate(decode(program.code)):
        if isinstance(each, kind) and all(each.shape):
            first.setdefault(each.segment, position)
    return [(position, segment) for segment, position in first.items()]
