"""The ALU engine on the real accumulator, beside a GEMM that takes banks away from it."""

import random
from dataclasses import replace

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect

from microtron.hw.accumulator import Accumulator
from microtron.hw.alu.alu import start_to_end
from microtron.isa.config import tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, Requantize, RequantizeFlags

from ..simulate import kept, simulate
from .alu_bench import Model, bits_of
from .decoding_alu import DecodingAlu

CONFIG = replace(tiny, block_out=2, acc_bytes=2 << 10, out_bytes=256)   # 4 banks of 64 tiles
SPARE = 63                                                              # of each bank, for GEMM


def join():
    """An accumulator with an engine on its ports."""
    m = Module()
    m.submodules.alu = alu = DecodingAlu(CONFIG)
    m.submodules.accumulator = accumulator = Accumulator(CONFIG)
    connect(m, alu.left, accumulator.alu_a)
    connect(m, alu.right, accumulator.alu_b)
    connect(m, alu.acc, accumulator.alu_write)
    m.d.comb += alu.tokens.granted.eq(1)
    return m, alu, accumulator


def run(instructions, *, disturbance=0.0, seed=0):
    """Execute; compare the accumulator at every end. Returns the cycles of starts and ends."""
    m, alu, accumulator = kept(join)
    rng, model = random.Random(seed), Model(CONFIG, seed)
    starts, ends = [], []

    async def testbench(ctx):
        load(ctx, accumulator, model)
        cycle = 0
        while len(ends) < len(instructions):
            offer(ctx, alu, instructions, len(starts))
            disturb(ctx, accumulator, rng, disturbance)
            if ctx.get(alu.events.start):
                starts.append(cycle)
            end = ctx.get(alu.events.end)
            await ctx.tick()
            if end:
                assert model.execute(instructions[len(ends)])
                compare(ctx, accumulator, model)
                ends.append(cycle)
            cycle += 1

    simulate(m, testbench)
    return starts, ends


def load(ctx, accumulator, model):
    for tile, value in enumerate(model.acc):
        bank, row = divmod(tile, CONFIG.acc_bank_tiles)
        ctx.set(accumulator.banks[bank].data[row], bits_of(value))


def compare(ctx, accumulator, model):
    for tile, value in enumerate(model.acc):
        bank, row = divmod(tile, CONFIG.acc_bank_tiles)
        if row != SPARE:
            found = ctx.get(accumulator.banks[bank].data[row])
            assert found == bits_of(value), f"tile {tile} is {found:#x}"


def offer(ctx, alu, instructions, position):
    ctx.set(alu.commands.valid, position < len(instructions))
    if position < len(instructions):
        word = int.from_bytes(instructions[position].encode(), "little")
        ctx.set(alu.commands.payload, {"word": word, "position": position})


def disturb(ctx, accumulator, rng, probability):
    """GEMM reads and writes spare tiles of any bank, and is never refused."""
    reads, writes = accumulator.gemm_read, accumulator.gemm_write
    for port in (reads, writes):
        tile = ctx.get(port.next_index)
        ctx.set(port.enable, ctx.get(port.next_enable) << tile // CONFIG.acc_bank_tiles)
        ctx.set(port.spares, ~ctx.get(port.enable))
        ctx.set(port.index, tile)
        ctx.set(port.next_enable, rng.random() < probability)
        ctx.set(port.next_index, _spare(rng))


def _spare(rng):
    return rng.randrange(CONFIG.acc_banks) * CONFIG.acc_bank_tiles + SPARE


PROGRAM = [
    Alu(op=AluOp.ADD, dst=0, lhs=8, rhs=70, loops=(2, 2, 4), dst_stride=(8, 4, 1),
        rhs_stride=(1, 0, 2)),
    AluI(op=AluOp.SHR, dst=4, src=2, loops=(1, 2, 5), dst_stride=(0, 1, 2), src_stride=(0, 2, 1),
         immediate=3),
    Alu(op=AluOp.MAX, dst=1, lhs=1, rhs=2, loops=(1, 3, 4), dst_stride=(0, 0, 1),
        rhs_stride=(0, 0, 1)),
    AluI(op=AluOp.MOVE, dst=202, immediate=35),
    Requantize(dst=130, src=0, params=200, loops=(2, 1, 8), dst_stride=(8, 0, 1),
               src_stride=(8, 0, 1), flags=RequantizeFlags.ACC),
    Alu(op=AluOp.SUB, dst=190, lhs=130, rhs=10, loops=(1, 2, 6), dst_stride=(0, 6, 1),
        rhs_stride=(0, 6, 1)),
    AluI(op=AluOp.MIN, dst=5, src=130, loops=(1, 1, 6), src_stride=(0, 0, 1), target=Buffer.OUT),
]


@pytest.mark.parametrize("disturbance", [0.0, 0.4, 0.8])
def test_a_program_leaves_what_the_model_leaves(disturbance):
    assert len(run(PROGRAM, disturbance=disturbance, seed=2)[1]) == len(PROGRAM)


def test_banks_that_do_not_conflict_give_a_vector_a_cycle():
    add = Alu(loops=(1, 1, 40), rhs=70, dst_stride=(0, 0, 1), rhs_stride=(0, 0, 1))
    assert run([add]) == ([0], [start_to_end(CONFIG, 40)])
