"""Runs a unit with two clocks in Amaranth's simulator, and streams through it."""

from __future__ import annotations

import random
from typing import Any

from amaranth.sim import Simulator

# Periods of the system's clock and of the accelerator's: equal, in step, and prime to each other.
PERIODS = ((10, 10), (20, 10), (7, 13), (17, 16), (5, 31), (31, 5))
UNIT = 1e-9


def simulate_clocks(unit: Any, periods: tuple[int, ...], *testbenches: Any,
                    domains: tuple[str, ...] = ("system", "accelerator"),
                    background: tuple[Any, ...] = (), limit: int = 20_000) -> None:
    """Until every testbench has returned; fails after so many cycles of the slower clock."""
    async def watch(ctx: Any) -> None:
        await ctx.delay(limit * max(periods) * UNIT)
        raise AssertionError(f"not finished after {limit} cycles")

    simulator = Simulator(unit)
    for number, (period, domain) in enumerate(zip(periods, domains, strict=True)):
        simulator.add_clock(period * UNIT, phase=(0.5 + 0.3 * number) * period * UNIT,
                            domain=domain)
    for each in testbenches:
        simulator.add_testbench(each)
    for each in (*background, watch):
        simulator.add_testbench(each, background=True)
    simulator.run()


def sender(stream: Any, domain: str, items: list[int], eagerness: float, seed: int) -> Any:
    """Offers items, each until it is taken."""
    async def run(ctx: Any) -> None:
        rng = random.Random(seed)
        for item in items:
            while rng.random() >= eagerness:
                await ctx.tick(domain)
            ctx.set(stream.payload, item)
            ctx.set(stream.valid, 1)
            while not (await ctx.tick(domain).sample(stream.ready))[-1]:
                pass
            ctx.set(stream.valid, 0)

    return run


def receiver(stream: Any, domain: str, items: list[int], eagerness: float, seed: int) -> Any:
    """Takes items, which must be these."""
    async def run(ctx: Any) -> None:
        rng = random.Random(seed)
        for item in items:
            found = None
            while found is None:
                willing = rng.random() < eagerness
                ctx.set(stream.ready, willing)
                _, _, valid, payload = await ctx.tick(domain).sample(stream.valid, stream.payload)
                found = payload if willing and valid else None
            assert found == item
        ctx.set(stream.ready, 0)

    return run
