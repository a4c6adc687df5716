"""The forwarding adder beside a memory that answers three cycles later: few tiles, any order."""

import random
from dataclasses import replace

import pytest

from microtron.hw.gemm.forwarding import ForwardingAdder
from microtron.isa.config import tiny

from ..simulate import simulate

CONFIGS = {"tiny": tiny, "batch": replace(tiny, batch=2, block_out=2)}
TILES = 5
LOW = (1 << 32) - 1


def random_addition(rng, lanes, sum_bits):
    return {"valid": rng.random() < 0.85, "clear": rng.random() < 0.15,
            "tile": rng.randrange(TILES), "dst": rng.randrange(TILES),
            "sums": [rng.randrange(-1 << sum_bits - 1, 1 << sum_bits - 1) for _ in range(lanes)]}


def packed(tile):
    return sum((lane & LOW) << 32 * number for number, lane in enumerate(tile))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("seed", range(2))
def test_results_are_those_of_one_addition_after_another(config, seed):
    rng = random.Random(seed)
    unit = ForwardingAdder(config)
    sum_bits = len(unit.sums[0])
    additions = [random_addition(rng, unit.lanes, sum_bits) for _ in range(400)]
    memory = [[rng.getrandbits(32) for _ in range(unit.lanes)] for _ in range(TILES)]
    exact = [list(tile) for tile in memory]

    async def testbench(ctx):
        answers, dropped = {}, False
        for cycle in range(1, len(additions) - 2):
            reading, current = additions[cycle + 2], additions[cycle - 1]
            answers[cycle + 2] = packed(memory[reading["tile"]])
            ctx.set(unit.reading, {name: reading[name]
                                   for name in ("valid", "clear", "tile", "dst")})
            ctx.set(unit.tile, 0 if dropped else answers.get(cycle - 1, 0))
            dropped = ctx.get(unit.drop)
            for lane, value in enumerate(current["sums"]):
                ctx.set(unit.sums[lane], value)
            if cycle > 5:
                written = additions[cycle - 2]
                bank = written["dst"] // unit.config.acc_bank_tiles
                assert ctx.get(unit.write.enable) == written["valid"] << bank
                assert ctx.get(unit.write.enable) == ctx.get(~unit.write.spares)
                if written["valid"]:
                    check_write(ctx, unit, written, exact)
                    memory[written["dst"]] = list(exact[written["dst"]])
            await ctx.tick()

    for addition in additions[:4]:
        addition["valid"] = False
    simulate(unit, testbench)


def check_write(ctx, unit, addition, exact):
    addend = [0] * unit.lanes if addition["clear"] else exact[addition["tile"]]
    result = [(a + b) & LOW for a, b in zip(addend, addition["sums"], strict=True)]
    assert ctx.get(unit.write.index) == addition["dst"]
    assert ctx.get(unit.write.data) == packed(result)
    exact[addition["dst"]] = result
