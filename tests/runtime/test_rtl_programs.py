"""Random programs on the hardware: they must leave exactly the functional simulator's memory.

2,000 programs over three configurations, each with a memory timing of its own; `make soak` goes on
with as many as it is told, over these and all presets.
"""

import os
import random
from dataclasses import replace

import pytest

from microtron.isa.config import base, small, tiny, wide
from microtron.isa.generator import random_program
from microtron.isa.timing import MemoryTiming
from microtron.runtime.device import Address
from microtron.runtime.rtl import RtlDevice
from microtron.sim.functional import Functional

CONFIGS = {
    "tiny": tiny,
    "batch": replace(tiny, batch=2, block_in=8, bus_bits=128),
    "int4": replace(tiny, wgt_bits=4, block_out=8, bus_bits=256, acc_banks=2, queue_depth=2),
}
PART = 100
PROGRAMS = {"tiny": 1000, "batch": 500, "int4": 500}
SOAK = int(os.environ.get("SOAK_PROGRAMS", "1000"))


def random_timing(rng):
    return MemoryTiming(
        read_latency=rng.choice((1, 2, 5, 32, 100)), write_latency=rng.choice((1, 3, 16, 60)),
        cycles_per_beat=rng.choice((1, 1, 2, 3)), reads=rng.choice((1, 2, 8, 32)),
        writes=rng.choice((1, 2, 16)), shared=rng.random() < 0.7,
        stalls=rng.choice((0, 0, 30, 100, 200)), seed=rng.getrandbits(60))


def compare(config, seed):
    rng = random.Random(seed)
    program = random_program(config, seed, length=rng.choice((5, 30, 60)))
    expected = Functional(program)
    expected.run()
    device = RtlDevice(config, timing=random_timing(rng))
    device.load(program)
    report = device.run()
    assert report.counters["instructions"] == len(program.code)
    for segment in program.segments:
        ours = device.read(Address(segment.name), segment.size)
        assert (ours == expected.memory.read(segment.name, 0, segment.size)).all(), (
            f"seed {seed}: segment {segment.name} differs; see it with "
            f"random_program(config, {seed})")


@pytest.mark.parametrize(("name", "part"), [
    (name, part) for name, count in PROGRAMS.items() for part in range(count // PART)])
def test_random_programs_leave_the_same_memory(name, part):
    for seed in range(part * PART, (part + 1) * PART):
        compare(CONFIGS[name], seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(50))
def test_many_random_programs_leave_the_same_memory(part):
    configs = [*CONFIGS.values(), small, base, wide]
    weights = (40, 20, 20, 10, 6, 4)        # large arrays are slow, and small ones meet corners
    for number in range(part, SOAK, 50):
        seed = (1 << 40) + number
        compare(random.Random(seed).choices(configs, weights)[0], seed)
