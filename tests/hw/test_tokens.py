"""Token counters against a dictionary of numbers, under random traffic."""

import random
from dataclasses import replace

import pytest

from microtron.hw.tokens import Tokens
from microtron.isa.config import tiny
from microtron.isa.instructions import Engine

from .simulate import kept, simulate

SMALL = replace(tiny, token_bits=2)


def masks(rng, engine, density):
    return sum(1 << other for other in Engine if other != engine and rng.random() < density)


@pytest.mark.parametrize("seed", range(2))
def test_counters_match_a_model_in_every_cycle(seed):
    rng = random.Random(seed)
    unit = kept(Tokens, SMALL)
    counts = {(giver, taker): 0 for giver in Engine for taker in Engine if giver != taker}
    waits = dict.fromkeys(Engine)           # of the instruction at hand; None if there is none
    overflows, before = 0, set()            # before: those in the last cycle

    async def testbench(ctx):
        nonlocal overflows, before
        for _ in range(1000):
            density = rng.choice((0.2, 0.5, 0.9))
            posts = {engine: masks(rng, engine, density) for engine in Engine}
            taken = {}
            for engine in Engine:
                port, wait = unit.port(engine), waits[engine] or 0
                ctx.set(port.wait, wait)
                ctx.set(port.post, posts[engine])
                missing = sum(1 << giver for giver in Engine if wait >> giver & 1
                              and not counts[giver, engine])
                assert ctx.get(port.missing) == missing
                there = waits[engine] is not None
                assert not there or ctx.get(port.granted) == (missing == 0)
                taken[engine] = there and missing == 0 and rng.random() < 0.7
                ctx.set(port.take, taken[engine])
            expected = set()
            for giver, taker in counts:
                post = posts[giver] >> taker & 1
                take = taken[taker] and (waits[taker] or 0) >> giver & 1
                if post and not take and counts[giver, taker] == SMALL.token_limit:
                    expected.add(giver)
                else:
                    counts[giver, taker] += post - bool(take)
            assert ctx.get(unit.overflow) == sum(1 << giver for giver in before)
            before = expected
            overflows += len(expected)
            for engine in Engine:
                renews, coming = taken[engine] or waits[engine] is None, masks(rng, engine, 0.5)
                ctx.set(unit.renews[engine], renews)
                ctx.set(unit.coming[engine], coming)
                if renews:
                    waits[engine] = coming if rng.random() < 0.9 else None
            await ctx.tick()

    simulate(unit, testbench)
    assert overflows > 10
