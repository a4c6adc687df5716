"""Random programs on the accelerator, through memory and driver of cocotbext-axi."""

import os

import cocotb
from cocotb_bench import Bench
from cocotb_compare import compare

from microtron.isa.config_files import parse_toml
from microtron.testing.random_programs import random_program

CONFIG = parse_toml(os.environ["CONFIGURATION"])
PROGRAMS = int(os.environ["PROGRAMS"])


@cocotb.test()
async def random_programs_leave_the_memory_of_the_functional_simulator(dut):
    start = 0 if CONFIG.address_bits <= 32 else 1 << CONFIG.address_bits - 1
    bench = Bench(dut, seed=cocotb.RANDOM_SEED, memory_bytes=1 << 19, memory_start=start)
    await bench.reset()
    for number in range(PROGRAMS):
        await compare(bench, random_program(CONFIG, cocotb.RANDOM_SEED * 1000 + number, length=20))
