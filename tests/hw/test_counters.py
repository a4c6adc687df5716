"""Counters whose upper bits are in a memory count like any others."""

import random

import pytest

from microtron.hw.counters import Counters

from .simulate import kept, simulate

WIDEST = (1, 8, 1, 1, 8)


def steps_of(kind, rng):
    """A step for each counter: everything, nothing, or as it comes."""
    return [{"all": most, "none": 0, "any": rng.randint(0, most)}[kind] for most in WIDEST]


@pytest.mark.parametrize("seed", range(4))
def test_each_is_the_sum_of_its_steps_at_any_time(seed):
    rng = random.Random(seed)
    counters = kept(Counters, WIDEST)

    async def testbench(ctx):
        sums, asked = [0] * len(WIDEST), [None, None]
        for cycle in range(1500):
            steps = steps_of(rng.choice(("all", "all", "any", "none")), rng)
            number, clears = rng.randrange(len(WIDEST)), cycle in (0, 3, 700, 705)
            ctx.set(counters.read, number)
            ctx.set(counters.clear, clears)
            for place, step in enumerate(steps):
                ctx.set(getattr(counters, f"step_{place}"), step)
            if (expected := asked.pop(0)) is not None:
                assert ctx.get(counters.value) == expected, cycle
            asked.append(sums[number])
            await ctx.tick()
            sums = [0 if clears else old + step for old, step in zip(sums, steps, strict=True)]

    simulate(counters, testbench)
