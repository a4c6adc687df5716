"""Packing: the steps along a row move each of its tiles once, and nothing beside them."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import data

from microtron.hw.transfer.packing import Packing, lanes_of, parts_of
from microtron.isa.instructions import Buffer

from ..simulate import simulate
from .boxes import CONFIGS, LOADED

ALL = (*LOADED, Buffer.OUT)
AHEAD = ("together", "fits", "within")      # what whoever walks keeps from step to step
NAMES = [pytest.param(name, marks=[pytest.mark.soak] if name == "a word too few" else [])
         for name in CONFIGS]


class Prepared:
    """A packing with what is known before the first step of a run of `tiles`."""

    def __init__(self, config):
        self.unit = unit = Packing(config, ALL)
        self.tiles = Signal.like(unit.left)
        self.first = {name: Signal.like(getattr(unit, name), name=f"first_{name}")
                      for name in AHEAD}
        self.of_instruction = {name: Signal.like(each, name=f"start_{name}")
                               for name, each in self.first.items()}

    def run(self, testbench):
        """The unit has no clock of its own."""
        m, unit = Module(), self.unit
        m.domains.sync = ClockDomain()
        m.submodules.unit = unit
        prepared = Signal(data.StructLayout(unit.prepared_layout()))
        m.d.comb += [unit.lanes.eq(prepared.lanes), unit.parts.eq(prepared.parts),
                     *unit.prepare(prepared, unit.buffer, self.tiles, unit.index, unit.lane)]
        of_instruction = unit.start(prepared, unit.lane)
        for name, value in unit.begin(prepared, unit.index, unit.lane).items():
            m.d.comb += [self.first[name].eq(value),
                         self.of_instruction[name].eq(of_instruction[name])]
        simulate(m, testbench, limit=1)


@pytest.mark.parametrize("name", NAMES)
def test_steps_move_every_byte_of_a_row_once_and_nothing_else(name):
    config = CONFIGS[name]
    prepared = Prepared(config)
    unit = prepared.unit
    rng = random.Random(name)

    async def testbench(ctx):
        for _ in range(60):
            buffer = rng.choice(ALL)
            tile, lanes = config.tile_bytes(buffer), lanes_of(config, buffer)
            left = tiles = rng.choice((1, 2, 3, rng.randint(1, max(2, 3 * lanes + 1))))
            index = rng.randint(0, config.tiles(buffer) - 1)
            lane, part = rng.randrange(lanes), 0
            at = lane * tile if lanes > 1 else 0    # bytes from the start of the first beat
            for signal, value in ((unit.buffer, buffer), (prepared.tiles, tiles),
                                  (unit.index, index), (unit.lane, lane)):
                ctx.set(signal, value)
            await ctx.delay(0)
            ahead = {each: ctx.get(prepared.first[each]) for each in AHEAD}
            assert ahead == {each: ctx.get(prepared.of_instruction[each]) for each in AHEAD}
            ahead["last_part"] = parts_of(config, buffer) == 1
            ends = ahead["fits"] and ahead["last_part"]
            moved = []
            while left:
                for signal, value in ((unit.index, index), (unit.lane, lane), (unit.part, part),
                                      (unit.left, left)):
                    ctx.set(signal, value)
                for each, value in ahead.items():
                    ctx.set(getattr(unit, each), value)
                await ctx.delay(0)
                count, strobe = left if ends else ctx.get(unit.advance), ctx.get(unit.strobe)
                beat = at // config.bus_bytes * config.bus_bytes
                fresh = [beat + byte for byte in range(config.bus_bytes) if strobe >> byte & 1]
                assert len(fresh) == ctx.get(unit.bytes) > 0
                moved += fresh
                reached = index + max(count, 1) - 1
                assert ctx.get(unit.outside) == (reached >= config.tiles(buffer))
                if lanes > 1:
                    check_lanes(ctx, unit, index, lane, count, lanes, buffer)
                else:
                    assert (count, ctx.get(unit.word_lanes)) == (
                        part == parts_of(config, buffer) - 1, 1)
                at += len(fresh)
                left, index = left - count, index + count
                assert ends == (left == 0)
                assert ctx.get(unit.ends_beat) == (left == 0 or at % config.bus_bytes == 0)
                ends = ctx.get(unit.next_ends_row)
                lane, part = ctx.get(unit.next_lane), ctx.get(unit.next_part)
                ahead = {each: ctx.get(getattr(unit, f"next_{each}", unit.together))
                         for each in ahead}
            start = moved[0]
            assert moved == list(range(start, start + tiles * tile))

    prepared.run(testbench)


def check_lanes(ctx, unit, index, lane, count, lanes, buffer):
    """Several tiles move together only between the same lanes, and then as many as there are."""
    same = index % lanes == lane and buffer not in (Buffer.ACC, Buffer.ACC8)
    assert ctx.get(unit.alone) == (not same)
    assert count == (min(lanes - lane, ctx.get(unit.left)) if same else 1)
    assert ctx.get(unit.word_lane) == index % lanes
    assert ctx.get(unit.word_lanes) == ((1 << count) - 1) << index % lanes


@pytest.mark.parametrize("name", NAMES)
def test_padding_moves_one_tile_and_no_beat(name):
    config = CONFIGS[name]
    prepared = Prepared(config)
    unit = prepared.unit
    rng = random.Random(name)

    async def testbench(ctx):
        ctx.set(unit.padding, 1)
        ctx.set(unit.last_part, 1)
        for _ in range(60):
            buffer = rng.choice(LOADED)
            lanes = lanes_of(config, buffer)
            index, left = rng.randrange(config.tiles(buffer) + 2), rng.randint(1, 3)
            lane = rng.randrange(lanes)
            for signal, value in ((unit.buffer, buffer), (unit.index, index), (unit.left, left),
                                  (unit.fits, left == 1), (unit.lane, lane)):
                ctx.set(signal, value)
            await ctx.delay(0)
            assert [ctx.get(each) for each in (unit.advance, unit.bytes, unit.ends_beat,
                                               unit.alone)] == [1, 0, 0, 0]
            assert ctx.get(unit.next_fits) == ctx.get(unit.next_ends_row) == (left == 2)
            assert (ctx.get(unit.next_lane), ctx.get(unit.next_last_part)) == (lane, 1)
            assert ctx.get(unit.outside) == (index >= config.tiles(buffer))
            assert ctx.get(unit.word_lanes) == 1 << index % lanes

    prepared.run(testbench)
