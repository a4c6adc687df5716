"""The forwarding adder beside a memory that answers three cycles later: few tiles, any order."""

import random
from dataclasses import replace

import pytest

from microtron.hw.gemm.forwarding import ForwardingAdder
from microtron.isa.config import tiny

from ..simulate import simulate

CONFIGS = {"tiny": tiny, "batch": replace(tiny, batch=2, block_out=2),
           "groups": replace(tiny, batch=2, block_in=2, block_out=8)}
TILES = 5
LOW = (1 << 32) - 1


def random_addition(rng, config, lanes, sum_bits):
    groups = config.acc_groups if config.acc_groups > 1 else 0
    whole = (1 << groups) - 1
    return {"groups": rng.choice((whole, 1 << rng.randrange(max(1, groups)) & whole)),
            "valid": rng.random() < 0.85, "clear": rng.random() < 0.15,
            "tile": rng.randrange(TILES), "dst": rng.randrange(TILES),
            "sums": [rng.randrange(-1 << sum_bits - 1, 1 << sum_bits - 1) for _ in range(lanes)]}


def group_of(config, lane):
    """The group of lanes that a depthwise product writes, for a lane of a tile."""
    return lane // (config.batch * config.depthwise_lanes)


def pack(tile):
    return sum((lane & LOW) << 32 * number for number, lane in enumerate(tile))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("seed", range(2))
def test_results_are_those_of_one_addition_after_another(config, seed):
    rng = random.Random(seed)
    unit = ForwardingAdder(config)
    sum_bits = len(unit.sums[0])
    additions = [random_addition(rng, config, unit.lanes, sum_bits) for _ in range(400)]
    memory = [[rng.getrandbits(32) for _ in range(unit.lanes)] for _ in range(TILES)]
    exact = [list(tile) for tile in memory]

    async def testbench(ctx):
        answers, dropped = {}, 0
        for cycle in range(1, len(additions) - 2):
            reading, current = additions[cycle + 2], additions[cycle - 1]
            answers[cycle + 2] = list(memory[reading["tile"]])
            ctx.set(unit.reading, {name: reading[name]
                                   for name in unit.reading.shape().members})
            tile = answers.get(cycle - 1, [0] * unit.lanes)
            ctx.set(unit.tile, pack([0 if dropped >> group_of(config, lane) & 1 else value
                                       for lane, value in enumerate(tile)]))
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
    if addition["groups"]:
        assert ctx.get(unit.write.groups) == addition["groups"]
    written = [not addition["groups"] or addition["groups"] >> group_of(unit.config, lane) & 1
               for lane in range(unit.lanes)]
    data, before = ctx.get(unit.write.data), exact[addition["dst"]]
    assert [data >> 32 * lane & LOW for lane in range(unit.lanes) if written[lane]] == [
        each for lane, each in enumerate(result) if written[lane]]
    exact[addition["dst"]] = [new if here else old for new, old, here
                              in zip(result, before, written, strict=True)]
