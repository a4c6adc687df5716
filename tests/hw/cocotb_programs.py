"""Random programs on the accelerator, through memory and driver of cocotbext-axi."""

import os

import cocotb
from cocotb_bench import Bench

from microtron.isa.config_files import parse_toml
from microtron.isa.generator import random_program
from microtron.isa.program import Access
from microtron.isa.registers import Status
from microtron.isa.stream import as_bytes
from microtron.runtime.rtl import placed
from microtron.sim.functional import Functional

CONFIG = parse_toml(os.environ["CONFIGURATION"])
PROGRAMS = int(os.environ["PROGRAMS"])
GAP = bytes(range(256)) * 16        # behind every segment, and it must stay there


@cocotb.test()
async def random_programs_leave_the_memory_of_the_functional_simulator(dut):
    bench = Bench(dut, seed=cocotb.RANDOM_SEED, memory_bytes=1 << 24)
    await bench.reset()
    for number in range(PROGRAMS):
        await compare(bench, random_program(CONFIG, cocotb.RANDOM_SEED * 1000 + number, length=20))


async def compare(bench, program):
    expected = Functional(program)
    code, *bases = placed(program)
    bench.memory.write(code, as_bytes(program.code).tobytes())
    for base, data in zip(bases, expected.memory.segments, strict=True):
        bench.memory.write(base, data.tobytes() + GAP)
    expected.run()
    status = await bench.run(code, len(program.code), [
        (base, segment.size, int(segment.access == Access.WRITE))
        for base, segment in zip(bases, program.segments, strict=True)])
    assert status == Status.DONE | Status.INTERRUPT
    for base, segment, data in zip(bases, program.segments, expected.memory.segments, strict=True):
        found = bench.memory.read(base, segment.size + len(GAP))
        assert found == data.tobytes() + GAP, f"segment {segment.name} differs"
