"""Instructions that arrive while their queues are full: the same in stretches as beat by beat."""

import random
from dataclasses import replace

import pytest

from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, AluOp, Buffer, Engine, Gemm, Load, Store, Sync
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.cycle.run import run_cycles
from microtron.testing.compare import Case

from .test_skip_repeats import assert_equal

SIZE = 1 << 14
BLOCKS = {
    Engine.LOAD: lambda rng: Load(shape=(1, rng.randint(1, 9), rng.randint(1, 20))),
    Engine.GEMM: lambda rng: Gemm(count=rng.randint(1, 3), loops=(
        1, rng.randint(1, 9), rng.choice((1, 3, 7, 40)))),
    Engine.ALU: lambda rng: AluI(op=AluOp.ADD, loops=(1, rng.randint(1, 6), 30),
                                 dst_stride=(0, 0, 1), src_stride=(0, 0, 1)),
    Engine.STORE: lambda rng: Store(buffer=Buffer.OUT, segment=1, shape=(1, 1, rng.randint(1, 50))),
}


def random_case(seed):
    """Runs of instructions for one engine, most of them longer than its queue."""
    rng = random.Random(seed)
    config = replace(tiny, bus_bits=rng.choice((64, 128, 256)), queue_depth=rng.choice((2, 4, 16)),
                     reads_in_flight=rng.choice((1, 2, 8)))
    code = [Load(buffer=Buffer.UOP, shape=(1, 1, 4))]
    for _ in range(rng.randint(1, 4)):
        engine = rng.choice(list(BLOCKS))
        code += [BLOCKS[engine](rng) for _ in range(rng.choice((1, 3, 20, 40)))]
    timing = MemoryTiming(read_latency=rng.choice((1, 8, 32, 100)), shared=rng.random() < 0.7,
                          reads=rng.choice((1, 4, 16)), cycles_per_beat=rng.choice((1, 1, 2)))
    return Case(program=Program(config, encode([*code, Sync()]), (
        Segment("input", SIZE, Access.READ), Segment("output", SIZE, Access.WRITE))),
        timing=timing)


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_runs_of_instructions_that_are_longer_than_their_queues(first):
    for seed in range(first, first + 60):
        assert_equal(random_case(seed))


def test_most_of_them_reach_their_end():
    faults = [int(run_cycles(random_case(seed).program).fault) for seed in range(20)]
    assert faults.count(0) > 15
