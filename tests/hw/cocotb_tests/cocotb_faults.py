"""Faults of programs and drivers, through real AXI. What must follow is in `cocotb_cases`."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotb_cases import (
    ALL_STORED,
    BARRIER,
    BEFORE,
    DATA,
    DATA_BYTES,
    NOWHERE,
    OTHER,
    PARTLY,
    RESULT,
    SIZE,
    STORE,
    TILE,
    TILES,
    UOP,
    WRONG,
    Case,
    assert_fails,
    check,
    prepared,
    program_of,
    tried,
)

from microtron.isa.faults import Fault
from microtron.isa.instructions import (
    INSTRUCTION_BYTES,
    Alu,
    AluI,
    Buffer,
    Engines,
    Gemm,
    Load,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.registers import Status

LOAD_UOP = (Load(buffer=Buffer.UOP, offset=UOP), BARRIER)
BLANK = bytes(INSTRUCTION_BYTES)


def patched(instruction, place, value):
    """A word with one byte changed."""
    word = bytearray(instruction.encode())
    word[place] = value
    return bytes(word)


@cocotb.test()
async def a_word_that_is_no_instruction(dut):
    bench = await prepared(dut, 1)
    words = (BLANK, b"\xff" * INSTRUCTION_BYTES,
             patched(Gemm(), 0, 99),
             patched(Load(), 1, Engines.LOAD),              # waits for itself
             patched(Load(), 3, Buffer.OUT),                # which cannot be loaded
             patched(Store(segment=RESULT), 4, NOWHERE + 1),
             patched(Sync(), 2, Engines.LOAD))              # sync has no tokens
    for word in tried(words):
        await check(bench, Case(cause=Fault.ILLEGAL, words=(word,)))
    await check(bench, Case(cause=Fault.ILLEGAL, words=(STORE, STORE, BLANK), after=2,
                            other=PARTLY))


@cocotb.test()
async def an_index_outside_a_scratchpad(dut):
    bench = await prepared(dut, 2)
    many = {"loops": (1, 1, 600), "dst_stride": (0, 0, 1)}
    outside = ((Load(sram=510, shape=(1, 1, 3)),),
               (Load(buffer=Buffer.ACC, sram=511, shape=(1, 1, 2)),),
               (Gemm(uop=256),),
               (*LOAD_UOP, Gemm(**many)),
               (*LOAD_UOP, Gemm(loops=(600, 1, 1), src_stride=(1, 0, 0))),
               (*LOAD_UOP, Gemm(loops=(1, 2, 1), wgt_stride=(0, -1, 0))),
               (AluI(dst=512),), (Alu(rhs=512),), (Requantize(params=510),),
               (AluI(target=Buffer.OUT, **many),))
    for words in tried(outside):
        await check(bench, Case(cause=Fault.INDEX, words=words, after=len(words) - 1))
    for store in tried((Store(segment=OTHER, sram=510, shape=(1, 1, 3)),
                        Store(segment=OTHER, buffer=Buffer.ACC, sram=65535))):
        await check(bench, Case(cause=Fault.INDEX, words=(store,), other=None))


@cocotb.test()
async def dram_outside_a_window(dut):
    bench = await prepared(dut, 3)
    outside = (Load(offset=len(DATA_BYTES)),
               Load(segment=OTHER, offset=SIZE - TILE, shape=(1, 1, 2)),
               Load(offset=8, shape=(1, 3, 1), stride=(0, -8)),
               Load(offset=(1 << 32) - TILE), Load(segment=NOWHERE),
               Store(segment=DATA),                         # which is for reading
               Store(segment=OTHER, offset=SIZE),
               Store(segment=OTHER, offset=SIZE - TILE, shape=(1, 1, 2)),
               Store(segment=OTHER, offset=(1 << 32) - TILE), Store(segment=NOWHERE))
    for wrong in tried(outside):
        await check(bench, Case(cause=Fault.ADDRESS, words=(wrong,)))
    rows = Store(segment=OTHER, offset=64, shape=(1, 4, 6), stride=(0, -32), sram_pitch=(0, 6))
    await check(bench, Case(cause=Fault.ADDRESS, words=(rows,), other=None))
    for wrong in (Load(offset=2), Store(segment=OTHER, stride=(0, 1), shape=(1, 2, 1))):
        await check(bench, Case(cause=Fault.ALIGNMENT, words=(wrong,)))


@cocotb.test()
async def a_program_without_an_end(dut):
    bench = await prepared(dut, 4)
    for _ in tried(range(2)):
        await bench.load(program_of(), BEFORE, count=0)
        await bench.start()
        await assert_fails(bench, Fault.NO_END, 0, BEFORE)
        await check(bench, Case(cause=Fault.NO_END, count=WRONG))


@cocotb.test()
async def a_program_of_no_length_reads_nothing(dut):
    bench = await prepared(dut, 5)
    await bench.load(program_of(), BEFORE, count=0)
    await bench.start()
    assert await bench.stopped() == Status.FAILED | Status.INTERRUPT
    await bench.assert_quiet()
    assert bench.memory.beats_read == []


@cocotb.test()
async def a_start_while_running(dut):
    """In the middle of loads, stores and a gemm that takes long."""
    bench = await prepared(dut, 6)
    busy = program_of(*LOAD_UOP, Gemm(loops=(1, 1, 60000)), *[Load(shape=(1, 1, TILES)), STORE] * 8)
    for _ in tried(range(6)):
        await bench.load(busy, BEFORE)
        await bench.start()
        await ClockCycles(dut.clk, bench.rng.randrange(1, 600))
        assert Status(await bench.read("status")) == Status.RUNNING
        await bench.start()
        await assert_fails(bench, Fault.RESTARTED, 0, (
            DATA_BYTES, (BEFORE[RESULT], ALL_STORED), PARTLY))
