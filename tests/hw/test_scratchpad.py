"""Scratchpads against a list of tiles: parts, lanes, padding, and data that stay."""

import random
from dataclasses import replace

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module

from microtron.hw.scratchpad import Scratchpad
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Buffer

from .simulate import simulate

# The least of everything: tiles of one byte in words of 32, and fewer tiles than a word holds.
SMALLEST = Config(block_in=1, block_out=1, inp_bytes=2, wgt_bytes=64, acc_bytes=64, out_bytes=64,
                  bus_bits=256)
CONFIGS = {
    "tiny": tiny,
    "bus128": replace(tiny, bus_bits=128),
    "bus256": replace(tiny, bus_bits=256, wgt_bits=4),
    "tall": replace(tiny, batch=2, block_in=16, block_out=2),
    "smallest": SMALLEST,
}
FILLED = (Buffer.UOP, Buffer.INP, Buffer.WGT)


class Reads:
    """What the read port must show: nothing is known until the first read has come out."""

    def __init__(self, *, brief=False):
        self.shown, self.on_the_way, self.brief = None, [None], brief

    def step(self, value):
        """Advance a cycle in which `value` is read, or nothing. Returns what is shown now."""
        shown = self.shown
        self.on_the_way.append(value)
        arrived = self.on_the_way.pop(0)
        if arrived is not None or self.brief:
            self.shown = arrived or 0
        return shown


def lanes_of(value, bits, count):
    return [value >> bits * lane & (1 << bits) - 1 for lane in range(count)]


def fill(ctx, unit, rng, tiles, busy):
    """Drive a random fill and do the same to the list. Never touches the tile `busy`."""
    port, bus = unit.fill, len(unit.fill.data)
    data, tile = rng.getrandbits(bus), rng.randrange(len(tiles))
    part, whole = rng.randrange(unit.parts), rng.random() < 0.3
    mask = rng.getrandbits(unit.lanes) if unit.lanes > 1 else rng.getrandbits(1)
    first = tile // unit.lanes * unit.lanes
    if unit.lanes > 1:
        written = {first + lane: value for lane, value in
                   enumerate(lanes_of(data, unit.tile_bits, unit.lanes)) if mask >> lane & 1}
    else:
        parts = lanes_of(tiles[tile], bus, unit.parts)
        parts = [data] * unit.parts if whole else [*parts[:part], data, *parts[part + 1:]]
        written = {tile: sum(value << bus * number for number, value in enumerate(parts))}
    enable = rng.random() < 0.7 and busy not in written
    for name, value in (("enable", enable), ("data", data), ("index", tile), ("part", part),
                        ("whole", whole), ("lanes", mask)):
        ctx.set(getattr(port, name), value)
    assert ctx.get(port.ready)
    return {tile: value for tile, value in written.items() if tile < len(tiles)} if enable else {}


def write(ctx, unit, rng, tiles, busy):
    """The same for the port that writes one tile."""
    tile, data = rng.randrange(len(tiles)), rng.getrandbits(unit.tile_bits)
    enable = rng.random() < 0.7 and tile != busy
    ctx.set(unit.write.enable, enable)
    ctx.set(unit.write.index, tile)
    ctx.set(unit.write.data, data)
    return {tile: data} if enable else {}


def check(config, buffer, seed, *, words=False, brief=False, shared=False, cycles=400):
    rng = random.Random(seed)
    unit = Scratchpad(config, buffer, words=words, brief=brief, shared=shared)
    tiles = [0] * config.tiles(buffer)
    own = 8 * config.tile_bytes(buffer)
    ports = [(unit.read, max(own, config.bus_bits) if words else own, Reads(brief=brief)),
             *([(unit.tiles, 8 * config.tile_bytes(Buffer.INP), Reads(brief=True))]
               if shared else [])]

    def read_value(tile, bits):
        """As many bits as a port is wide, of those that hold a tile."""
        first = tile * own // bits * bits
        whole = sum(value << own * number for number, value in enumerate(
            tiles[first // own:-(-(first + bits) // own)]))
        return whole >> first % own & (1 << bits) - 1

    async def testbench(ctx):
        for _ in range(cycles):
            tile = rng.choice((rng.randrange(len(tiles)), rng.randrange(min(len(tiles), 4))))
            for port, wide, reads in ports:
                enable = rng.random() < 0.6
                ctx.set(port.enable, enable)
                ctx.set(port.index, tile if port is unit.read else tile * own // wide)
                shown = reads.step(read_value(tile, wide) if enable else None)
                if shown is not None:
                    assert ctx.get(port.data) == shown
            written = (fill if buffer in FILLED else write)(ctx, unit, rng, tiles, tile)
            for each, value in written.items():
                tiles[each] = value
            await ctx.tick()

    simulate(unit, testbench)


@pytest.mark.parametrize("buffer", FILLED)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_fills_come_back_as_tiles_two_cycles_after_a_read(config, buffer):
    check(config, buffer, seed=int(buffer))
    check(config, buffer, seed=int(buffer), brief=True)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_tiles_written_come_back_alone_or_with_the_word_they_share(config, words):
    check(config, Buffer.OUT, seed=7, words=words)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_gemm_reads_tiles_by_a_port_of_its_own(config):
    check(config, Buffer.OUT, seed=8, words=True, shared=True)


def test_every_tile_has_a_place_of_its_own():
    config = replace(tiny, bus_bits=128)
    unit = Scratchpad(config, Buffer.OUT)
    count = config.tiles(Buffer.OUT)

    async def testbench(ctx):
        for tile in range(count):
            ctx.set(unit.write.enable, 1)
            ctx.set(unit.write.index, tile)
            ctx.set(unit.write.data, tile + 1)
            await ctx.tick()
        ctx.set(unit.write.enable, 0)
        for tile in range(count + 2):
            ctx.set(unit.read.enable, tile < count)
            ctx.set(unit.read.index, tile)
            if tile >= 2:
                assert ctx.get(unit.read.data) == tile - 1
            await ctx.tick()

    simulate(unit, testbench)


def test_the_smallest_have_two_words_and_no_signal_without_bits():
    m = Module()
    for buffer in (*FILLED, Buffer.OUT):
        m.submodules[buffer.name] = unit = Scratchpad(SMALLEST, buffer)
        assert unit.memory.depth == max(2, SMALLEST.tiles(buffer) // unit.lanes)
    assert "[-1:0]" not in verilog.convert(m, ports=[], emit_src=False)
