"""A queue of two places does the same with a memory as without one."""

import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from microtron.hw.fifo import StagedFifo
from microtron.hw.targets import find_target, small_memory

from .simulate import simulate

WIDTH = 8


@pytest.mark.parametrize("seed", range(4))
def test_two_places_in_a_memory_are_those_in_registers(seed):
    rng, reset = random.Random(seed), Signal()
    queues = (StagedFifo(WIDTH, 2), StagedFifo(WIDTH, 2, small_memory(find_target("gowin"))))
    often = rng.choice((0.3, 0.7, 1)), rng.choice((0.3, 0.7, 1))
    m, moved = Module(), [0]
    m.submodules += [ResetInserter(reset)(queue) for queue in queues]

    async def testbench(ctx):
        for _ in range(600):
            puts, takes, item = (rng.random() < often[0], rng.random() < often[1],
                                 rng.getrandbits(WIDTH))
            ctx.set(reset, rng.random() < 0.01)
            shown = []
            for queue in queues:
                ctx.set(queue.put.valid, puts)
                ctx.set(queue.put.payload, item)
                ctx.set(queue.take.ready, takes)
                valid = ctx.get(queue.take.valid)
                shown.append((ctx.get(queue.put.ready), ctx.get(queue.empty), ctx.get(queue.coming),
                              valid, valid and ctx.get(queue.take.payload)))
            assert shown[0] == shown[1]
            moved[0] += valid and takes
            await ctx.tick()

    simulate(m, testbench)
    assert moved[0] > 50
