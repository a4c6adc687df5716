"""The simulators that tests share: made once for a unit, whatever ran between."""

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from .simulate import KEPT, kept, simulate


class Remembers(Elaboratable):
    """A memory, whose ports are made when it is elaborated: Amaranth does that once."""

    def __init__(self, number=0):
        self.read = Signal(8)
        self.memory = Memory(shape=8, depth=2, init=[number, 0])

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        m.d.comb += self.read.eq(self.memory.read_port().data)
        return m


def reads(unit, number):
    async def testbench(ctx):
        await ctx.tick()
        assert ctx.get(unit.read) == number

    simulate(unit, testbench)


def test_a_kept_unit_runs_again_after_many_that_are_not_kept():
    reads(kept(Remembers, 5), 5)
    for number in range(KEPT + 1):
        reads(Remembers(number), number)
    reads(kept(Remembers, 5), 5)


def test_a_kept_unit_runs_again_after_a_run_that_failed():
    with pytest.raises(AssertionError):
        reads(kept(Remembers, 5), 6)
    reads(kept(Remembers, 5), 5)
    with pytest.raises(AssertionError):
        reads(Remembers(1), 6)
    reads(kept(Remembers, 5), 5)
