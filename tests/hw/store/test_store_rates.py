"""How long stores take, to the cycle, when memory takes a beat a cycle and answers after 32."""

from dataclasses import replace
from itertools import pairwise

import pytest

from microtron.isa.config import base, small, tiny
from microtron.isa.instructions import Buffer, Store

from ..transfer.boxes import STORED
from ..transfer.transfers import Machine, one_a_cycle, undisturbed

LATENCY = 32
OVERHEAD = 8        # start to the first beat on the bus 8, answer to end 1; the beat counts from 1
PRESETS = {"tiny": tiny, "small": small, "base": base}


def timed(config, stores):
    return undisturbed(config, stores, LATENCY)


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("buffer", STORED)
def test_a_contiguous_store_takes_its_beats_and_a_constant(name, bus_bits, buffer):
    config = replace(PRESETS[name], bus_bits=bus_bits)
    tile = config.tile_bytes(buffer)
    machine = timed(config, [Store(buffer=buffer, segment=1, shape=(1, 1, 0x400 // tile))])
    steps = 0x400 // config.bus_bytes
    if buffer == Buffer.ACC and tile < config.bus_bytes:
        steps = 0x400 // tile               # a word of the accumulator is a tile
    else:
        assert one_a_cycle(machine.bus.beats_at)
    assert machine.duration() == steps + LATENCY + OVERHEAD


def test_rows_and_planes_follow_without_a_bubble():
    store = Store(segment=1, buffer=Buffer.ACC, shape=(2, 4, 3), stride=(0x400, 0x100),
                  sram_pitch=(50, 10))
    machine = timed(tiny, [store])
    assert machine.duration() == 2 * 4 * 3 * 2 + LATENCY + OVERHEAD
    assert one_a_cycle(machine.bus.beats_at)


def test_tiles_whose_lanes_differ_take_a_cycle_each():
    machine = timed(tiny, [Store(segment=1, sram=1, shape=(1, 1, 100))])
    assert machine.duration() == 100 + LATENCY + OVERHEAD


def test_a_store_without_tiles_ends_four_cycles_after_its_start():
    assert timed(tiny, [Store(segment=1, shape=(0, 1, 1))]).duration() == 4


def test_stores_overlap_and_cost_one_cycle_between_them():
    stores = [Store(segment=1, buffer=Buffer.ACC, sram=20 * number, shape=(1, 1, 20))
              for number in range(6)]
    machine = timed(tiny, stores)
    ends = [cycle for cycle, _ in machine.commander.ends]
    assert [after - before for before, after in pairwise(ends)] == [41] * 5


def test_a_tile_of_many_beats_is_read_once():
    store = Store(segment=1, buffer=Buffer.ACC, shape=(1, 1, 8))
    machine = Machine(base, [store], stall=0.0)
    pad, reads = machine.pads[Buffer.ACC], []
    look = pad.look

    def counting():
        if pad.enable.value and pad.granted.value:
            reads.append(pad.index.value)
        look()

    pad.look = counting
    machine.run().assert_as_expected()
    assert reads == list(range(8))


def test_as_many_bursts_are_outstanding_as_the_configuration_allows():
    store = Store(segment=1, shape=(1, 30, 1), stride=(0, 0x40))
    for limit in (1, 3, 8):
        machine = timed(replace(tiny, writes_in_flight=limit), [store])
        assert machine.bus.most_pending == limit
