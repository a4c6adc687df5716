"""Runs a hardware unit in Amaranth's simulator: one clock, some testbenches, a time limit."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from amaranth.sim import Simulator

PERIOD = 1e-6
Testbench = Callable[[Any], Awaitable[None]]


def simulate(unit: Any, *testbenches: Testbench, limit: int = 10_000,
             background: Iterable[Testbench] = ()) -> None:
    """Run until every testbench has returned; fail after `limit` cycles.

    Within a cycle, testbenches run in the order given, each seeing what the ones before it set,
    and then those in the `background`, which may run for ever.
    """
    simulator = Simulator(unit)
    simulator.add_clock(PERIOD)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    for testbench in background:
        simulator.add_testbench(testbench, background=True)

    async def watch(ctx: Any) -> None:
        for _ in range(limit):
            await ctx.tick()
        raise AssertionError(f"not finished after {limit} cycles")

    simulator.add_testbench(watch, background=True)
    simulator.run()
