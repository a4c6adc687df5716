"""Packing: the steps along a row move each of its tiles once, and nothing beside them."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module

from microtron.hw.packing import Packing, parts_of
from microtron.isa.instructions import Buffer

from .boxes import CONFIGS, LOADED
from .simulate import simulate

ALL = (*LOADED, Buffer.OUT)


def run(unit, testbench):
    """The unit has no clock of its own."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.unit = unit
    simulate(m, testbench, limit=1)


@pytest.mark.parametrize("name", CONFIGS)
def test_steps_move_every_byte_of_a_row_once_and_nothing_else(name):
    config = CONFIGS[name]
    unit = Packing(config, ALL)
    rng = random.Random(name)

    async def testbench(ctx):
        for _ in range(60):
            buffer = rng.choice(ALL)
            tile, lanes = config.tile_bytes(buffer), config.bus_bytes // config.tile_bytes(buffer)
            left = tiles = rng.choice((1, 2, 3, rng.randint(1, max(2, 2 * lanes + 1))))
            index = rng.randint(0, config.tiles(buffer) - 1)
            place = rng.randrange(lanes) * tile if lanes else 0
            part, at = 0, place                     # `at`: bytes from the start of the first beat
            ctx.set(unit.buffer, buffer)
            moved = []
            while left:
                for signal, value in ((unit.index, index), (unit.place, place), (unit.part, part),
                                      (unit.left, left)):
                    ctx.set(signal, value)
                await ctx.delay(0)
                count, strobe = ctx.get(unit.count), ctx.get(unit.strobe)
                beat = at // config.bus_bytes * config.bus_bytes
                fresh = [beat + byte for byte in range(config.bus_bytes) if strobe >> byte & 1]
                assert len(fresh) == ctx.get(unit.bytes) > 0
                moved += fresh
                reached = index + max(count, 1) - 1
                assert ctx.get(unit.outside) == (reached >= config.tiles(buffer))
                if lanes > 1:
                    check_lanes(ctx, unit, index, place // tile, count, lanes, buffer)
                else:
                    assert (count, ctx.get(unit.word_lanes)) == (
                        part == parts_of(config, buffer) - 1, 1)
                at += len(fresh)
                left, index = left - count, index + count
                assert ctx.get(unit.ends_row) == (left == 0)
                assert ctx.get(unit.ends_beat) == (left == 0 or at % config.bus_bytes == 0)
                place, part = ctx.get(unit.next_place), ctx.get(unit.next_part)
            start = moved[0]
            assert moved == list(range(start, start + tiles * tile))

    run(unit, testbench)


def check_lanes(ctx, unit, index, lane, count, lanes, buffer):
    """Several tiles move together only between the same lanes, and then as many as there are."""
    same = index % lanes == lane and buffer not in (Buffer.ACC, Buffer.ACC8)
    assert ctx.get(unit.alone) == (not same)
    assert count == (min(lanes - lane, ctx.get(unit.left)) if same else 1)
    assert (ctx.get(unit.lane), ctx.get(unit.word_lane)) == (lane, index % lanes)
    assert ctx.get(unit.word_lanes) == ((1 << count) - 1) << index % lanes


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_moves_one_tile_and_no_beat(name):
    config = CONFIGS[name]
    unit = Packing(config, ALL)
    rng = random.Random(name)

    async def testbench(ctx):
        ctx.set(unit.padding, 1)
        for _ in range(60):
            buffer = rng.choice(LOADED)
            index, left = rng.randrange(config.tiles(buffer) + 2), rng.randint(1, 3)
            place = rng.randrange(config.bus_bytes)
            for signal, value in ((unit.buffer, buffer), (unit.index, index), (unit.left, left),
                                  (unit.place, place)):
                ctx.set(signal, value)
            await ctx.delay(0)
            lanes = max(1, config.bus_bytes // config.tile_bytes(buffer))
            assert [ctx.get(each) for each in (unit.count, unit.bytes, unit.ends_beat)] == [1, 0, 0]
            assert ctx.get(unit.ends_row) == (left == 1)
            assert ctx.get(unit.next_place) == place
            assert ctx.get(unit.outside) == (index >= config.tiles(buffer))
            assert ctx.get(unit.word_lanes) == 1 << index % lanes

    run(unit, testbench)
