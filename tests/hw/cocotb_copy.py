"""Drives the stand-in, which copies segment 0 to segment 1, through cocotbext-axi."""

import os
import random

import cocotb
from cocotb_bench import Bench

from microtron.isa.faults import Fault
from microtron.isa.registers import Status

PROGRAM, SOURCE, TARGET = 0x1000, 0x2000, 0x8000
SIZE = int(os.environ["SIZE"])
SEGMENTS = ((SOURCE, SIZE, 0), (TARGET, SIZE, 1))
LEGAL, ILLEGAL = bytes([1, *bytes(31)]), bytes(32)


@cocotb.test()
async def copies_under_random_pauses(dut):
    bench = Bench(dut, seed=cocotb.RANDOM_SEED)
    await bench.reset()
    for turn in range(3):
        data = random.Random(turn).randbytes(SIZE)
        bench.memory.write(PROGRAM, 3 * LEGAL)
        bench.memory.write(SOURCE, data)
        bench.memory.write(TARGET, bytes(SIZE + 64))
        assert await bench.run(PROGRAM, 3, SEGMENTS) == Status.DONE | Status.INTERRUPT
        assert bench.memory.read(TARGET, SIZE) == data
        assert bench.memory.read(TARGET + SIZE, 64) == bytes(64)
        assert await bench.read("load_bytes_low") >= SIZE


@cocotb.test()
async def stops_at_an_illegal_word_and_runs_again(dut):
    bench = Bench(dut, seed=cocotb.RANDOM_SEED + 1)
    await bench.reset()
    bench.memory.write(PROGRAM, 2 * LEGAL + ILLEGAL)
    assert await bench.run(PROGRAM, 3, SEGMENTS) == Status.FAILED | Status.INTERRUPT
    assert await bench.read("fault") == Fault.ILLEGAL
    assert await bench.read("fault_position") == 2
    bench.memory.write(PROGRAM, 3 * LEGAL)
    assert await bench.run(PROGRAM, 3, SEGMENTS) == Status.DONE | Status.INTERRUPT
