"""Which addresses of the accelerator are in memory, also where they are shorter than the bus's."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from microtron.boards.soc.dram.dram_port import Gear, Port
from microtron.isa.config import tiny

BASE = 0x4000_0000


@pytest.mark.parametrize(("bits", "inside", "outside"), [
    (32, (BASE, BASE + (1 << 23) - 1), (0, BASE - 1, BASE + (1 << 23))),
    (24, (0, (1 << 23) - 1), (1 << 23, (1 << 24) - 1)),
    (23, (0, (1 << 23) - 1), ()),
])
def test_addresses_are_the_low_bits_of_those_on_the_bus(bits, inside, outside):
    gear = Gear(tiny, Port(word_bits=64, address_bits=20, base=BASE, size=1 << 23))
    address, found = Signal(bits), Signal()
    m = Module()
    m.d.comb += found.eq(gear.is_outside(address))

    async def testbench(ctx):
        for place, expected in [*((each, 0) for each in inside), *((each, 1) for each in outside)]:
            ctx.set(address, place)
            assert ctx.get(found) == expected, hex(place)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
