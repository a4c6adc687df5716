"""Narrow bases and strides against whole ones: the same indices in range, and none else."""

import random

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.sim import Simulator

from microtron.hw.narrow import narrow, reach_bits

WORD = 16


@pytest.mark.parametrize("tiles", [2, 4, 512, 8192, 16384, 32768, 65536])
def test_an_index_is_in_range_as_the_whole_one_is(tiles):
    m, base, stride = Module(), Signal(WORD), Signal(signed(WORD))
    bits = reach_bits(tiles)
    begun, stepped = (Signal(signed(bits), name=name) for name in ("begun", "stepped"))
    m.d.comb += [begun.eq(narrow(base, bits)),
                 stepped.eq(narrow(base, bits) + narrow(stride, bits))]
    rng, edges = random.Random(tiles), (0, 1, tiles - 1, tiles, tiles + 1, 2 * tiles - 1, 3 * tiles)
    bases = [each for each in (*edges, *(rng.getrandbits(WORD) for _ in range(60)), 65535)
             if each < 1 << WORD]
    strides = [each for edge in (*bases, 32768) for each in (edge, -edge)
               if -1 << WORD - 1 <= each < 1 << WORD - 1]

    def in_range(number):
        return number if 0 <= number < tiles else None

    async def check(ctx):
        for first in bases:
            ctx.set(base, first)
            assert in_range(ctx.get(begun)) == in_range(first)
            for step in strides if first < tiles else ():
                ctx.set(stride, step)
                assert in_range(ctx.get(stepped)) == in_range(first + step)

    simulator = Simulator(m)
    simulator.add_testbench(check)
    simulator.run()


def test_few_bits_are_left():
    assert len(narrow(Signal(WORD), reach_bits(512))) == 10
    assert len(narrow(Signal(signed(WORD)), reach_bits(512))) == 11
