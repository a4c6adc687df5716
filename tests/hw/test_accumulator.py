"""The accumulator against a list of tiles: who waits for whom, and what a fill writes."""

import random
from dataclasses import replace

import pytest
from amaranth.back import verilog

from microtron.hw.accumulator import Accumulator
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Buffer

from .simulate import simulate

SMALLEST = Config(block_in=1, block_out=1, inp_bytes=64, wgt_bytes=64, acc_bytes=128, out_bytes=64,
                  bus_bits=256, acc_banks=8)
CONFIGS = {
    "tiny": tiny,
    "two banks": replace(tiny, acc_banks=2, bus_bits=128),
    "one bank": replace(tiny, acc_banks=1, batch=2, block_out=8),   # 8-bit tiles of two beats
    "tall": replace(tiny, batch=2, block_out=16, bus_bits=64),
    "smallest": SMALLEST,
}
OPERANDS = ("alu_b", "alu_a")
READERS = ("gemm_read", "alu_b", "alu_a", "store")
WRITERS = ("gemm_write", "alu_write", "fill")


class Model:
    """Tiles as lists of lanes, and what each reader sees."""

    def __init__(self, config):
        self.config = config
        self.lanes = config.batch * config.block_out
        self.tiles = [[0] * self.lanes for _ in range(config.tiles(Buffer.ACC))]
        self.shown = {name: None for name in READERS}
        self.arriving = {name: None for name in READERS}
        self.read = {name: None for name in READERS}

    def group(self, lane):
        """The group of lanes that a depthwise product writes."""
        return lane // (self.config.batch * self.config.depthwise_lanes)

    def bank(self, tile):
        return tile * self.config.acc_banks // len(self.tiles)

    def granted(self, requests):
        """Which of {port: tile or None} win their bank, the first port first."""
        taken, winners = set(), set()
        for port, tile in requests.items():
            if tile is not None and self.bank(tile) not in taken:
                taken.add(self.bank(tile))
                winners.add(port)
        return winners

    def filled(self, tile, data, part, whole, lanes, widen):
        """The lanes a fill leaves in a tile."""
        bits = 8 if widen else 32
        in_beat = self.config.bus_bits // bits
        values = [sign(data >> bits * lane, bits) for lane in range(in_beat)]
        if whole:
            return [sign(data, 8)] * self.lanes
        if in_beat >= self.lanes:
            first = lanes.bit_length() - 1 if in_beat > self.lanes else 0
            return values[first * self.lanes:(first + 1) * self.lanes]
        before = self.tiles[tile]
        return [values[lane % in_beat] if lane // in_beat == part else before[lane]
                for lane in range(self.lanes)]


def sign(value, bits):
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def pack(lanes):
    return sum((lane & 0xFFFFFFFF) << 32 * number for number, lane in enumerate(lanes))


def random_fill(rng, model):
    """Arguments of a legal fill: parts and lanes exist; padding is one byte repeated."""
    bus, whole = model.config.bus_bits, rng.random() < 0.2
    widen = whole or rng.random() < 0.5
    tile_bits = model.lanes * (8 if widen else 32)
    data, lanes = rng.getrandbits(bus), 1 << rng.randrange(max(1, bus // tile_bits))
    if whole:
        data, lanes = rng.getrandbits(8) * (((1 << bus) - 1) // 255), rng.getrandbits(4)
    return {"data": data, "part": rng.randrange(max(1, tile_bits // bus)), "whole": whole,
            "lanes": lanes, "widen": widen}


def random_requests(rng, model, operands):
    """Tiles that ports ask for, often of the same bank, and operands often those before; no tile
    is both read and written."""
    near = rng.randrange(len(model.tiles))
    tiles = {port: rng.choice((rng.randrange(len(model.tiles)), near, near ^ 1, None))
             for port in READERS + WRITERS}
    if rng.random() < 0.5:
        tiles |= operands
    reads = {port: tiles[port] for port in READERS}
    writes = {port: None if tiles[port] in reads.values() else tiles[port] for port in WRITERS}
    return reads, writes


def announce(ctx, unit, requests, rng):
    """What is asked for in the next cycle, as far as it must be known before. Operands stay if
    they can, whatever could follow them."""
    tile = requests["gemm_read"]
    ctx.set(unit.gemm_read.next_enable, tile is not None)
    ctx.set(unit.gemm_read.next_index, 0 if tile is None else tile)
    stays = all(requests[name] in (None, ctx.get(getattr(unit, name).index)) for name in OPERANDS)
    for name in OPERANDS:
        port, tile = getattr(unit, name), requests[name]
        ctx.set(port.moves, not stays)
        ctx.set(port.following, rng.randrange(unit.config.tiles(Buffer.ACC)) if stays
                else tile or 0)
    tile, port = requests["gemm_write"], unit.gemm_write
    ctx.set(port.next_enable, tile is not None)
    ctx.set(port.next_index, rng.randrange(unit.config.tiles(Buffer.ACC)) if tile is None else tile)
    tile, port = requests["alu_write"], unit.alu_write
    moves = tile != ctx.get(port.index) or rng.random() < 0.5
    ctx.set(port.moves, moves)
    for name, chosen in (("follows", moves), ("stays", not moves)):     # the other says anything
        ctx.set(getattr(port, name), tile is not None if chosen else rng.random() < 0.5)
    ctx.set(port.following, tile if moves and tile is not None
            else rng.randrange(unit.config.tiles(Buffer.ACC)))


def bank_mask(unit, tile):
    return (tile is not None) << (tile or 0) // unit.config.acc_bank_tiles


def drive(ctx, unit, requests):
    for name, tile in requests.items():
        port = getattr(unit, name)
        banks = bank_mask(unit, tile)
        if name in ("store", "fill"):
            ctx.set(port.banks, banks)
            ctx.set(port.enable, tile is not None)
        else:
            ctx.set(port.enable, banks)
        ctx.set(port.index, 0 if tile is None else tile)
        if name in OPERANDS:
            ctx.set(port.asks, tile is not None)
        if hasattr(port, "spares"):
            ctx.set(port.spares, ~ctx.get(port.enable))


def check_data(ctx, unit, model):
    for name in READERS:
        if model.shown[name] is not None:
            assert ctx.get(getattr(unit, name).data) == model.shown[name], name


def check_grants(ctx, unit, reads, writes):
    for name in ("alu_b", "alu_a", "store", "alu_write"):
        port = getattr(unit, name)
        if ctx.get(port.enable):
            assert ctx.get(port.granted) == (name in reads | writes), name
    if ctx.get(unit.fill.enable):
        assert ctx.get(unit.fill.ready) == ("fill" in writes)


def step(model, reads, winners, drop):
    for name in READERS:
        if name == "gemm_read":         # its data stay for a cycle only
            model.shown[name] = model.arriving[name] and pack([
                0 if drop >> model.group(lane) & 1 else model.arriving[name] >> 32 * lane
                for lane in range(model.lanes)])
        elif model.arriving[name] is not None:
            model.shown[name] = model.arriving[name]
        model.arriving[name] = model.read[name]
        model.read[name] = pack(model.tiles[reads[name]]) if name in winners else None


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_grants_and_tiles_follow_the_table_of_priorities(config):
    rng = random.Random(len(config.digest) + config.acc_banks)
    unit, model = Accumulator(config), Model(config)

    async def testbench(ctx):
        reads, writes = dict.fromkeys(READERS), dict.fromkeys(WRITERS)
        for _ in range(350):
            drive(ctx, unit, {**reads, **writes})
            fill = random_fill(rng, model)
            for name, value in fill.items():
                ctx.set(getattr(unit.fill, name), value)
            values = {port: [rng.getrandbits(32) for _ in range(model.lanes)]
                      for port in ("gemm_write", "alu_write")}
            for port, lanes in values.items():
                ctx.set(getattr(unit, port).data, pack(lanes))
            groups = rng.randrange(1, 1 << config.acc_groups) if config.acc_groups > 1 else 0
            if groups:
                ctx.set(unit.gemm_write.groups, groups)
            if groups and writes["gemm_write"] is not None:
                before = model.tiles[writes["gemm_write"]]
                values["gemm_write"] = [
                    new if groups >> model.group(lane) & 1 else before[lane]
                    for lane, new in enumerate(values["gemm_write"])]
            readers, writers = model.granted(reads), model.granted(writes)
            check_grants(ctx, unit, readers, writers)
            check_data(ctx, unit, model)
            drop = rng.getrandbits(config.acc_groups) if rng.random() < 0.3 else 0
            ctx.set(unit.gemm_read.drop, drop)
            step(model, reads, readers, drop)
            for port in writers:
                tile = writes[port]
                model.tiles[tile] = (model.filled(tile, **fill) if port == "fill"
                                     else values[port])
            asked = writes["alu_write"]
            reads, writes = random_requests(rng, model, {name: reads[name] for name in OPERANDS})
            if rng.random() < 0.4:              # a write that is not granted stays
                writes["alu_write"] = asked
            announce(ctx, unit, {**reads, **writes}, rng)
            await ctx.tick()

    simulate(unit, testbench)


def test_gemm_and_alu_in_different_banks_do_not_disturb_each_other():
    unit, bank = Accumulator(tiny), tiny.acc_bank_tiles

    async def testbench(ctx):
        apart = {"gemm_read": 0, "alu_b": bank, "alu_a": 2 * bank, "store": 3 * bank,
                 "gemm_write": bank - 1, "alu_write": 2 * bank - 1, "fill": 3 * bank - 1}
        announce(ctx, unit, apart, random.Random())
        await ctx.tick()
        drive(ctx, unit, apart)
        for port in (unit.alu_b, unit.alu_a, unit.store, unit.alu_write):
            assert ctx.get(port.granted)
        assert ctx.get(unit.fill.ready)
        at_once = {**apart, "alu_b": bank - 1, "alu_a": bank - 1, "store": bank - 1,
                   "alu_write": 0, "fill": 0}
        announce(ctx, unit, at_once, random.Random())
        await ctx.tick()
        drive(ctx, unit, at_once)
        for port in (unit.alu_b, unit.alu_a, unit.store, unit.alu_write):
            assert not ctx.get(port.granted)
        assert not ctx.get(unit.fill.ready)
        await ctx.tick()

    simulate(unit, testbench)


def test_one_bank_needs_no_signal_without_bits():
    assert "[-1:0]" not in verilog.convert(Accumulator(CONFIGS["one bank"]), emit_src=False)
