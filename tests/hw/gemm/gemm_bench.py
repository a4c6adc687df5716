"""GEMM with its scratchpads, driven for some instructions and watched in every cycle."""

import random
from dataclasses import dataclass, field

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect

from microtron.hw.accumulator import READERS, Accumulator
from microtron.hw.gemm.gemm import GemmEngine
from microtron.hw.gemm.gemm_decode import GemmDecoder
from microtron.hw.scratchpad import Scratchpad
from microtron.isa.instructions import Buffer, Engines, Gemm, GemmFlags, Window
from microtron.isa.verification.bounds import index_range
from microtron.sim.functional.scratchpads import Scratchpads, pack, unpack
from microtron.sim.functional.simulator import compute

from ..simulate import kept, simulate

FILLED = (Buffer.UOP, Buffer.INP, Buffer.WGT)
FIRSTS = (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_INNER)


class GemmBench(wiring.Component):
    """The engine behind its decoder, and the memories it reads and writes."""

    def __init__(self, config):
        self.config = config
        self.engine, self.decoder = GemmEngine(config), GemmDecoder(config)
        self.commands = self.decoder.commands
        self.pads = {buffer: Scratchpad(config, buffer, brief=buffer == Buffer.INP)
                     for buffer in FILLED}
        self.acc = Accumulator(config)
        super().__init__({"busy": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine, m.submodules.acc = self.engine, self.acc
        m.submodules.decoder = self.decoder
        connect(m, self.decoder.decoded, self.engine.commands)
        for buffer, pad in self.pads.items():
            name = buffer.name.lower()
            m.submodules[name] = pad
            connect(m, getattr(self.engine, name), pad.read)
        connect(m, self.engine.acc_read, self.acc.gemm_read)
        connect(m, self.engine.acc_write, self.acc.gemm_write)
        m.d.comb += self.busy.eq(self.engine.events.busy)
        return m

    def put(self, ctx, pads):
        """Copy scratchpads into the memories."""
        for buffer, pad in self.pads.items():
            tiles = words(pads.of(buffer), buffer, self.config)
            for word in range(0, len(tiles), pad.lanes):
                value = sum(tile << pad.tile_bits * lane
                            for lane, tile in enumerate(tiles[word:word + pad.lanes]))
                if value:           # memories begin with zeros
                    ctx.set(pad.memory.data[word // pad.lanes], value)
        for tile, value in enumerate(words(pads.acc, Buffer.ACC, self.config)):
            bank, place = divmod(tile, self.config.acc_bank_tiles)
            if value:
                ctx.set(self.acc.banks[bank].data[place], value)

    def taken(self, ctx):
        """The accumulator's tiles."""
        size = self.config.tile_bytes(Buffer.ACC)
        data = b"".join(ctx.get(bank.data[place]).to_bytes(size, "little")
                        for bank in self.acc.banks for place in range(bank.depth))
        return unpack(np.frombuffer(data, np.uint8), Buffer.ACC, self.config)


def words(tiles, buffer, config):
    size = config.tile_bytes(buffer)
    data = pack(tiles, buffer, config).tobytes()
    return [int.from_bytes(data[start:start + size], "little")
            for start in range(0, len(data), size)]


@dataclass
class Run:
    """What happened, by number of the instruction, and what was left in the accumulator."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)         # cycles with a write
    posts: list[int] = field(default_factory=list)
    waits: int = 0                                          # cycles in which tokens were missing
    fault: tuple[int, int, int] | None = None               # cycle, cause, position
    acc: np.ndarray | None = None


POSITION = 1000         # of the first instruction


def run(config, instructions, pads, *, seed=0, offered=1.0, granted=1.0, halt_at=None, cycles=None):
    """Feed the instructions, watch the engine's side of every contract, return what happened."""
    rng = random.Random(seed)
    bench, result = kept(GemmBench, config), Run()
    engine = bench.engine

    async def testbench(ctx):
        bench.put(ctx, pads)
        number = cycle = 0
        while len(result.ends) < len(instructions) if cycles is None else cycle < cycles:
            offers = number < len(instructions) and rng.random() < offered
            halted = halt_at is not None and cycle >= halt_at
            ctx.set(engine.halts, cycle + 1 == halt_at)
            ctx.set(bench.commands.valid, offers)
            if number < len(instructions):
                word = int.from_bytes(instructions[number].encode(), "little")
                ctx.set(bench.commands.payload, {"word": word, "position": POSITION + number})
            grant(ctx, engine, rng, granted)
            disturb(ctx, bench.acc, rng)
            started = observe(ctx, engine, result, cycle, offers, halted)
            assert not (started and halted)
            number += started
            cycle += 1
            await ctx.tick()
        if cycles is None:
            assert not ctx.get(bench.busy)
        result.acc = bench.taken(ctx)

    simulate(bench, testbench, limit=100_000)
    return result


def grant(ctx, engine, rng, granted):
    wait = ctx.get(engine.tokens.wait)
    there = rng.random() < granted or wait == 0
    ctx.set(engine.tokens.granted, there)
    ctx.set(engine.tokens.missing, 0 if there else wait)


def disturb(ctx, acc, rng):
    """Other engines read what they like: GEMM must not notice."""
    for name in READERS[1:]:
        port = getattr(acc, name)
        ctx.set(port.enable, rng.random() < 0.5)
        ctx.set(port.index, rng.randrange(acc.config.tiles(Buffer.ACC)))
        if hasattr(port, "spares"):
            ctx.set(port.spares, ~ctx.get(port.enable))
    ctx.set(acc.store.banks, 1 << rng.randrange(acc.config.acc_banks))


def observe(ctx, engine, result, cycle, offers, halted):
    """Record a cycle. Returns whether an instruction starts in it."""
    events = engine.events
    start, end = ctx.get(events.start), ctx.get(events.end)
    assert ctx.get(events.busy) == (len(result.starts) > len(result.ends))
    assert ctx.get(engine.commands.ready) == ctx.get(engine.tokens.take)
    assert ctx.get(engine.tokens.take) & offers == start
    assert not ctx.get(engine.tokens.bars)
    assert not start or ctx.get(engine.tokens.granted)
    if start:
        assert ctx.get(events.start_position) == POSITION + len(result.starts)
        result.starts.append(cycle)
    if ctx.get(events.wait):
        assert offers > start
        assert ctx.get(events.wait) == ctx.get(engine.tokens.wait)
        result.waits += 1
    post = ctx.get(engine.tokens.post)
    assert end or not post
    if end:
        assert not halted
        assert ctx.get(events.end_position) == POSITION + len(result.ends)
        result.ends.append(cycle)
        result.posts.append(post)
    if ctx.get(engine.acc_write.enable):
        result.writes.append(cycle)
    if ctx.get(events.fault.cause):
        fault = ctx.get(events.fault.cause), ctx.get(events.fault.position)
        assert result.fault is None or result.fault[1:] == fault
        result.fault = result.fault or (cycle, *fault)
    return start


def slots_of(instruction):
    outer, middle, inner = instruction.loops
    return outer * middle * inner * (1 if isinstance(instruction, Window) else instruction.count)


def writes_of(instruction):
    """The slots that write: of a window, those that end a sum."""
    outer, middle, inner = instruction.loops
    return (outer * middle * max(0, inner - 2) if isinstance(instruction, Window)
            else slots_of(instruction))


def expected_acc(instructions, pads):
    """The accumulator after the instructions, by the functional simulator."""
    pads = pads.with_copy_of(Buffer.ACC)
    for instruction in instructions:
        compute(instruction, pads)
    return pads.acc


def random_pads(rng, config):
    """Scratchpads full of numbers that lean on the corners."""
    pads = Scratchpads(config)
    numbers = np.random.default_rng(rng.getrandbits(32))
    for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC):
        tiles = pads.of(buffer)
        bits = config.wgt_bits if buffer == Buffer.WGT else 8 * tiles.itemsize
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        corners = numbers.choice(np.array([low, high, -1, 0, 1]), tiles.shape)
        plain = numbers.integers(low, high, tiles.shape, endpoint=True)
        tiles[...] = np.where(numbers.random(tiles.shape) < 0.3, corners, plain)
    return pads


def random_gemms(rng, config, count, *, most=4):
    """Valid instructions, and the micro-op scratchpad that they find."""
    uops = np.zeros((config.tiles(Buffer.UOP), 4), np.uint16)
    gemms, first = [], 0
    while len(gemms) < count:
        gemm = _random_gemm(rng, first, most)
        if config.has_windows and rng.random() < 0.6:
            gemm = _random_window(rng, first, most)
        reached = _random_uops(rng, config, gemm)
        if reached is not None:
            uops[first:first + len(reached)] = reached
            gemms.append(gemm)
            first += len(reached)
    return gemms, uops


def _random_window(rng, first, most):
    """What a gemm says, as far as a window can; its sums are often few and far from its slots."""
    gemm = _random_gemm(rng, first, most)
    mine = GemmFlags.START | GemmFlags.BIAS | GemmFlags.FIRST_MIDDLE | GemmFlags.FIRST_OUTER
    outer, middle, inner = gemm.loops
    return Window(flags=gemm.flags & mine, uop=first, loops=(outer, middle, inner * 2),
                  wait=gemm.wait, post=gemm.post, dst_stride=gemm.dst_stride,
                  src_stride=gemm.src_stride,
                  wgt_stride=tuple(each // 8 * 4 for each in gemm.wgt_stride))


def _random_gemm(rng, first, most):
    flags = GemmFlags.DEPTHWISE if rng.random() < 0.4 else GemmFlags(0)
    if rng.random() < 0.6:
        flags |= GemmFlags.START
        for flag in (GemmFlags.BIAS, GemmFlags.FIRST_UOP, *FIRSTS):
            if rng.random() < 0.5:
                flags |= flag
    least = 0 if rng.random() < 0.1 else 1
    strides = {name: tuple(rng.choice((0, 0, 1, -1, 2, rng.randint(-40, 40))) for _ in range(3))
               for name in ("dst_stride", "src_stride", "wgt_stride")}
    masks = [Engines(rng.choice((0, rng.getrandbits(4)))) & ~Engines.GEMM for _ in range(2)]
    return Gemm(flags=flags, uop=first, count=rng.randint(least, most),
                loops=tuple(rng.randint(least, most) for _ in range(3)),
                wait=masks[0], post=masks[1], **strides)


def _random_uops(rng, config, gemm):
    """Micro-ops that stay inside; often few different tiles, so that sums meet again soon."""
    columns = []
    is_window = isinstance(gemm, Window)
    count = 1 if is_window else gemm.count
    sums = (*gemm.loops[:2], max(0, gemm.loops[2] - 2)) if is_window else gemm.loops
    rows = config.block_out if is_window or gemm.flags & GemmFlags.DEPTHWISE else 1
    for strides, loops, limit, step in (
            (gemm.dst_stride, sums, config.tiles(Buffer.ACC), 1),
            (gemm.src_stride, gemm.loops, config.tiles(Buffer.INP), 1),
            (gemm.wgt_stride, gemm.loops, config.tiles(Buffer.WGT) * rows, 4 if is_window else 1),
            ((0, 0, 0), gemm.loops, config.tiles(Buffer.ACC), 1)):
        low, high = index_range(0, loops, strides) or (0, 0)
        if high - low >= limit:
            return None
        choices = range(-low, min(limit - high, 1 << 16), step)
        some = [rng.choice(choices) for _ in range(rng.choice((1, 2, 4)))]
        columns.append([rng.choice((*some, choices[0], choices[-1])) for _ in range(count)])
    if count and rng.random() < 0.5:            # start sums from tiles that are being written
        columns[3] = [rng.choice(columns[0]) for _ in range(count)]
    return np.array(columns, np.uint16).T
