"""The MAC array against NumPy: a new pair of tiles every cycle, sums a fixed time later."""

import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Fragment

from microtron.hw.gemm.mac import MacArray, mac_latency
from microtron.hw.targets import TARGETS
from microtron.isa.config import base, tiny

from ..simulate import simulate

CONFIGS = {
    "tiny": tiny,
    "int4": replace(tiny, wgt_bits=4),
    "batch": replace(tiny, batch=2, block_in=8, block_out=4),
    "more outputs": replace(tiny, block_in=2, block_out=8),
    "one input": replace(tiny, block_in=1, block_out=4, inp_bytes=1024),
    "one output": replace(tiny, block_in=16, block_out=1),
    "one of each": replace(tiny, block_in=1, block_out=1, inp_bytes=64, acc_bytes=64),
    "deep": replace(tiny, block_in=64, block_out=2),
    "windows": replace(tiny, window_taps=3),
    "int4 windows": replace(tiny, wgt_bits=4, block_in=8, block_out=16, window_taps=3),
    "batch of windows": replace(tiny, batch=2, block_in=16, block_out=8, window_taps=3),
    "batch, more outputs": replace(tiny, batch=4, block_in=4, block_out=8, window_taps=3),
}


def corner(rng, bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return rng.choice((low, high, -1, 0, 1, rng.randint(low, high), rng.randint(low, high)))


def random_tile(rng, rows, columns, bits):
    if rng.random() < 0.1:      # the largest sums there are
        return np.full((rows, columns), rng.choice((-(1 << bits - 1), (1 << bits - 1) - 1)))
    return np.array([[corner(rng, bits) for _ in range(columns)] for _ in range(rows)])


def in_groups(tile, config):
    """A tile as it lies: some lanes of all rows, then the next."""
    groups = np.split(tile, tile.shape[1] // config.depthwise_lanes, axis=1)
    return np.concatenate([each.ravel() for each in groups])


def pack(tile, bits):
    return sum((int(value) & (1 << bits) - 1) << bits * place
               for place, value in enumerate(tile.ravel()))


def expected(history):
    """The result of the last of some pairs."""
    inp, wgt, depthwise, _, window, _ = history[-1]
    if not depthwise:
        return inp @ wgt.T
    lanes = min(inp.shape[1], wgt.shape[0])
    sums = np.zeros((inp.shape[0], lanes), np.int64)
    for tap, (inp, wgt, _, row, _, group) in enumerate(history[-3:] if window else history[-1:]):
        of_group = inp[:, group * lanes:(group + 1) * lanes]
        sums += of_group * wgt[row + tap * window, :lanes]
    return np.tile(sums, wgt.shape[0] // lanes)


def draw(rng, config):
    """A pair of tiles and what to do with them. A window's sum is one if two of its products come
    from slots of windows as well."""
    row = rng.randrange(config.block_out)
    window = config.has_windows and rng.random() < 0.6
    depthwise = window or rng.random() < 0.4
    return (random_tile(rng, config.batch, config.block_in, 8),
            random_tile(rng, config.block_out, config.block_in, config.wgt_bits),
            depthwise, row // 4 * 4 if window else row, window,
            rng.randrange(config.inp_groups) if depthwise else 0)


def has_a_result(history):
    return not history[-1][4] or (len(history) > 2 and all(each[4] for each in history[-3:]))


class On(Elaboratable):
    """A unit as it is built for a target."""

    def __init__(self, unit, target):
        self.unit, self.target = unit, target

    def elaborate(self, platform):
        return Fragment.get(self.unit, self.target)


NARROW = replace(TARGETS["ecp5"], multipliers=0)        # where two products must share
PLATFORMS = {"one by one": None, "wide": TARGETS["xc7"], "narrow": NARROW}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_sums_follow_every_pair_of_tiles_after_the_latency(config, platform):
    rng = random.Random(config.digest)
    unit, latency, cycles = MacArray(config), mac_latency(config), 60
    pairs = [draw(rng, config) for _ in range(cycles)]

    async def testbench(ctx):
        for cycle in range(cycles):
            inp, wgt, depthwise, row, window, group = pairs[cycle]
            ctx.set(unit.inp, pack(in_groups(inp, config), 8))
            ctx.set(unit.wgt, pack(wgt, config.wgt_bits))
            ctx.set(unit.depthwise, depthwise)
            ctx.set(unit.row, row)
            if config.inp_groups > 1:
                ctx.set(unit.group, group)
            if config.has_windows:
                ctx.set(unit.window, window)
            history = pairs[:cycle - latency + 1]
            if cycle >= latency and has_a_result(history):
                sums = expected(history)
                got = ctx.get(unit.sums)
                assert [got[lane] for lane in range(sums.size)] == in_groups(
                    sums, config).tolist()
            await ctx.tick()

    simulate(On(unit, platform), testbench)


def test_latency_grows_by_one_with_every_factor_of_two():
    of = {block: mac_latency(replace(tiny, block_in=block)) for block in (2, 4, 8, 16, 32, 64)}
    assert of == {2: 3, 4: 4, 8: 5, 16: 6, 32: 7, 64: 8}
    assert mac_latency(base) == 6
