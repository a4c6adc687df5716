"""The ALU engine against a model that works step by step, with memories that refuse at random."""

import math
import random
from dataclasses import replace

import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engines,
    Requantize,
    RequantizeFlags,
    Table,
    lookup_flags,
)
from microtron.isa.verification.bounds import check

from ..simulate import simulate
from .alu_bench import Bench, Model
from .decoding_alu import DecodingAlu

TWO_ROWS = replace(tiny, batch=2, block_in=8, block_out=2, acc_bytes=4 << 10, out_bytes=512,
                   acc_banks=2, vector_cycles=2)
ONE_LANE = replace(tiny, block_out=1, acc_bytes=256, out_bytes=16, acc_banks=8, bus_bits=128)
CONFIGS = {"tiny": tiny, "two_rows": TWO_ROWS, "one_lane": ONE_LANE,
           "tables": replace(tiny, tables=8), "tables, two rows": replace(TWO_ROWS, tables=8)}


def any_instruction(rng, config):
    """Short loops over few tiles, so that steps often meet. Some reach outside."""
    strides = [tuple(rng.choice((0, 1, 1, -1, 2, 3)) for _ in range(3)) for _ in range(2)]
    common = {"loops": tuple(rng.choice((1, 1, 2, 3, rng.randrange(4))) for _ in range(3)),
              "dst_stride": strides[0], "wait": some_engines(rng), "post": some_engines(rng)}
    op, target = rng.choice(list(AluOp)), rng.choice((Buffer.ACC, Buffer.ACC, Buffer.OUT))

    def tile(buffer=Buffer.ACC):
        tiles = config.tiles(buffer)
        near = rng.choice((0, tiles // 2 - 2, tiles - 12, tiles // 4))
        return min(max(near, 0) + rng.randrange(12), tiles - 1)

    if config.tables and rng.random() < 0.2:
        return Table(table=rng.choice((0, 5)), src=tile(), wait=common["wait"],
                     post=common["post"])
    match rng.randrange(3):
        case 0:
            return Alu(op=op, target=target, dst=tile(target), lhs=tile(), rhs=tile(),
                       rhs_stride=strides[1], **common)
        case 1:
            immediate = rng.choice((0, 5, -1, rng.randrange(-1 << 31, 1 << 31)))
            return AluI(op=op, target=target, dst=tile(target), src=tile(), src_stride=strides[1],
                        immediate=immediate, **common)
    flags = rng.choice((0, RequantizeFlags.ACC, RequantizeFlags.ACC | RequantizeFlags.WIDE))
    flags |= rng.choice((0, RequantizeFlags.EVEN, RequantizeFlags.AWAY))
    if config.tables and not flags & RequantizeFlags.ACC:
        flags |= rng.choice((0, lookup_flags(0), lookup_flags(5)))
    low, high = sorted(rng.randrange(-128, 128) for _ in range(2))
    return Requantize(flags=flags, dst=tile(Buffer.ACC if flags & 1 else Buffer.OUT), src=tile(),
                      params=tile(), src_stride=strides[1], params_stride=rng.choice((0, 1, 3)),
                      low=low, high=high, zero_point=rng.randrange(-128, 128), **common)


def some_engines(rng):
    others = (Engines.LOAD, Engines.GEMM, Engines.STORE)
    return sum((each for each in others if rng.random() < 0.3), Engines(0))


def is_inside(instruction, config):
    try:
        check(instruction, config, (), None)
    except ExecutionError:
        return False
    return True


def inside(rng, config, count):
    """Random instructions that reach nothing outside."""
    found = []
    while len(found) < count:
        instruction = any_instruction(rng, config)
        if is_inside(instruction, config):
            found.append(instruction)
    return found


def reads_of(instruction):
    """Reads of the accumulator: each operand of a step once, parameters once in a while."""
    if isinstance(instruction, Table):
        return 64
    steps = math.prod(instruction.loops)
    match instruction:
        case Alu(op=op):
            return steps * (1 + op.reads_left)
        case AluI(op=op):
            return steps * op.reads_left
    return steps + (3 * instruction.loops[0] if steps else 0)


@pytest.mark.parametrize("refusal", [0, 0.3, 0.7])
@pytest.mark.parametrize("name", CONFIGS)
def test_any_program_leaves_what_the_model_leaves_at_every_end(name, refusal):
    check_any_program(name, refusal, seed=1, count=18 if refusal < 0.5 else 10)


@pytest.mark.soak
@pytest.mark.parametrize("refusal", [0, 0.3, 0.7])
@pytest.mark.parametrize("name", CONFIGS)
def test_any_long_program_leaves_what_the_model_leaves_at_every_end(name, refusal):
    for seed in range(2, 12):
        check_any_program(name, refusal, seed, count=50)


def check_any_program(name, refusal, seed, count):
    config = CONFIGS[name]
    instructions = inside(random.Random(f"{name} {refusal} {seed}"), config, count)
    bench = Bench(config, instructions, seed=seed, refusal=refusal).run()
    assert len(bench.ends) == count
    assert bench.fault is None
    assert bench.reads == sum(map(reads_of, instructions))


def test_the_model_is_the_functional_simulator():
    from microtron.sim.functional.scratchpads import Scratchpads
    from microtron.sim.functional.simulator import compute

    rng = random.Random(8)
    model, pads = Model(TWO_ROWS, 3), Scratchpads(TWO_ROWS)
    pads.acc[:] = model.acc.reshape(pads.acc.shape)
    pads.out[:] = model.out.reshape(pads.out.shape)
    for instruction in inside(rng, TWO_ROWS, 300):
        assert model.execute(instruction)
        compute(instruction, pads)
        assert (pads.acc.reshape(model.acc.shape) == model.acc).all()
        assert (pads.out.reshape(model.out.shape) == model.out).all()


def test_parameters_are_those_of_the_beginning_of_an_outer_iteration():
    # Writes its own multiplier in the first step; only the second outer iteration sees it.
    overwrites = Requantize(flags=RequantizeFlags.ACC, dst=41, src=4, params=40, loops=(2, 1, 3),
                            dst_stride=(8, 0, 1), src_stride=(3, 0, 1))
    shift = AluI(op=AluOp.MOVE, dst=42, immediate=33)
    bench = Bench(ONE_LANE, [shift, overwrites], seed=5).run()
    assert len(bench.ends) == 2


def test_every_rounding_reaches_the_lanes():
    fill = [AluI(op=AluOp.MOVE, dst=tile, immediate=value)
            for tile, value in ((0, 3), (1, 4), (2, 0), (3, 1 << 30), (4, 33))]
    roundings = (0, RequantizeFlags.EVEN, RequantizeFlags.AWAY)
    scaled = [Requantize(flags=flags, params=2, dst=2 * number, loops=(1, 1, 2),
                         dst_stride=(0, 0, 1), src_stride=(0, 0, 1))
              for number, flags in enumerate(roundings)]
    bench = Bench(ONE_LANE, fill + scaled).run()
    assert len(bench.ends) == 8
    # 3/8 becomes 2/4 and then 1 when rounded twice; 4/8 is a tie.
    assert bench.memory.out[:6, 0].tolist() == [1, 1, 0, 0, 0, 1]


def test_an_engine_without_tokens_says_what_it_waits_for():
    waits = AluI(wait=Engines.LOAD | Engines.GEMM, dst=3)
    unit = DecodingAlu(ONE_LANE)

    async def testbench(ctx):
        word = int.from_bytes(waits.encode(), "little")
        ctx.set(unit.commands.payload, {"word": word, "position": 5})
        ctx.set(unit.tokens.missing, Engines.GEMM)
        assert ctx.get(unit.events.wait) == 0
        ctx.set(unit.commands.valid, 1)
        assert ctx.get(unit.tokens.wait) == waits.wait
        assert ctx.get(unit.events.wait) == Engines.GEMM
        assert not ctx.get(unit.commands.ready)
        ctx.set(unit.tokens.granted, 1)
        assert ctx.get(unit.commands.ready)
        assert ctx.get(unit.tokens.take)
        ctx.set(unit.tokens.granted, 0)
        ctx.set(unit.halts, 1)
        await ctx.tick()
        ctx.set(unit.halts, 0)
        assert ctx.get(unit.events.wait) == 0
        assert ctx.get(unit.tokens.bars)            # no token will be granted any more
        assert not ctx.get(unit.tokens.take)

    simulate(unit, testbench)
