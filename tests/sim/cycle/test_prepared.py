"""A prepared program: the micro-ops that its loads bring, without trying every plane."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Load
from microtron.sim.cycle.prepared_program import prepare
from microtron.sim.functional.simulator import Functional

from ..functional.support import program

TILES = tiny.tiles(Buffer.UOP)
CONTENT = np.arange(4 * 512, dtype=np.uint16)
few = st.integers(0, 5)


def brought(load):
    """The scratchpad after one load, as the cycle-exact simulator fills it."""
    image = program(tiny, load, memory=CONTENT)
    micro_ops = prepare(image, tiny).micro_ops
    uops = np.zeros((TILES, 4), np.uint16)
    begin, end = micro_ops.span[0]
    values = micro_ops.values([segment.data for segment in image.segments])
    for number in range(begin, end):
        uops[micro_ops.tile[number]] = values[number]
    return image, uops, end - begin


@given(shape=st.tuples(few, few, few), sram=st.integers(0, 9), pitch=st.integers(0, 30),
       stride=st.tuples(few, few), offset=st.integers(0, 40))
def test_a_load_brings_what_the_functional_simulator_loads(shape, sram, pitch, stride, offset):
    image, uops, _ = brought(Load(buffer=Buffer.UOP, sram=sram, shape=shape, sram_pitch=pitch,
                                  offset=8 * offset, stride=tuple(8 * each for each in stride)))
    machine = Functional(image)
    machine.execute(0)
    np.testing.assert_array_equal(uops, machine.scratchpads.uop)


def test_planes_on_top_of_each_other_cost_nothing():
    _, uops, count = brought(Load(buffer=Buffer.UOP, shape=(65535, 4, 50), stride=(0, 400)))
    assert count == 200
    assert uops[199].tolist() == [796, 797, 798, 799]
    _, _, count = brought(Load(buffer=Buffer.UOP, shape=(100, 3, 50), sram_pitch=1))
    assert count == 99 + 150
