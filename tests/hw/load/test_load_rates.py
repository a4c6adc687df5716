"""How long loads take, to the cycle, when memory answers after 32 cycles and then every cycle."""

from dataclasses import replace
from itertools import pairwise

import pytest

from microtron.isa.config import base, small, tiny
from microtron.isa.instructions import Buffer, Load

from ..transfer.boxes import LOADED
from ..transfer.transfers import one_a_cycle, undisturbed

LATENCY = 32
OVERHEAD = 6        # start to address 4, beat to end 3, and the last beat counts from 1
PRESETS = {"tiny": tiny, "small": small, "base": base}


def timed(config, loads):
    return undisturbed(config, loads, LATENCY, shuffle=False)


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
@pytest.mark.parametrize("name", [
    name if name in ("tiny", "base") else pytest.param(name, marks=pytest.mark.soak)
    for name in PRESETS])
@pytest.mark.parametrize("buffer", LOADED)
def test_a_contiguous_load_takes_its_beats_and_a_constant(name, bus_bits, buffer):
    config = replace(PRESETS[name], bus_bits=bus_bits)
    tile = config.tile_bytes(buffer)
    load = Load(buffer=buffer, shape=(1, 1, 0x400 // tile))
    machine = timed(config, [load])
    beats = 0x400 // config.bus_bytes
    if buffer in (Buffer.ACC, Buffer.ACC8) and tile < config.bus_bytes:
        beats = 0x400 // tile               # a word of the accumulator is a tile
    assert machine.duration() == beats + LATENCY + OVERHEAD
    assert machine.commander.waited_for_memory == LATENCY + 1


def test_rows_and_planes_follow_without_a_bubble():
    load = Load(buffer=Buffer.WGT, shape=(2, 4, 3), stride=(0x400, 0x100), sram_pitch=12)
    machine = timed(tiny, [load])
    assert machine.duration() == 2 * 4 * 3 * 2 + LATENCY + OVERHEAD
    assert one_a_cycle(machine.bus.beats_at)


def test_tiles_whose_lanes_differ_take_a_cycle_each():
    machine = timed(tiny, [Load(sram=1, shape=(1, 1, 100))])
    assert machine.duration() == 100 + LATENCY + OVERHEAD


def test_padding_takes_a_cycle_a_tile_and_is_written_while_memory_is_waited_for():
    load = Load(buffer=Buffer.WGT, shape=(1, 3, 10), stride=(0, 160), pad=(1, 1, 2, 1))
    machine = timed(tiny, [load])
    first = 13 + 2                          # the row above and the left border of the next
    assert machine.duration() == 3 * 20 + 2 * 3 + 1 + 13 + LATENCY + OVERHEAD
    assert machine.commander.waited_for_memory == LATENCY + 1 - first
    border = timed(tiny, [Load(shape=(1, 0, 9), pad=(3, 0, 0, 0))])
    assert border.duration() == 27 + 5


def test_a_load_that_writes_nothing_ends_six_cycles_after_its_start():
    assert timed(tiny, [Load(shape=(0, 1, 1))]).duration() == 6


def test_loads_overlap_and_cost_one_cycle_between_them():
    loads = [Load(buffer=Buffer.WGT, sram=20 * number, shape=(1, 1, 20)) for number in range(8)]
    machine = timed(tiny, loads)
    ends = [cycle for cycle, _ in machine.commander.ends]
    assert [after - before for before, after in pairwise(ends)] == [41] * 7
    starts = [cycle for cycle, _ in machine.commander.starts]
    assert starts[:4] == [starts[0] + 2 * number for number in range(4)]


def test_bursts_are_requested_three_cycles_after_the_start_one_a_cycle():
    machine = timed(tiny, [Load(shape=(1, 10, 1), stride=(0, 0x100))])
    start = machine.commander.starts[0][0]
    assert machine.bus.offered_at == list(range(start + 4, start + 14))


def test_as_many_bursts_are_outstanding_as_the_configuration_allows():
    load = Load(shape=(1, 40, 1), stride=(0, 0x40))
    for limit in (1, 5, 16):
        machine = timed(replace(tiny, reads_in_flight=limit), [load])
        assert machine.bus.most_pending == limit
