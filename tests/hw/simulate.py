"""Runs a hardware unit in Amaranth's simulator: one clock, some testbenches, a time limit.

Building a simulator takes longer than most runs. A unit object that is run again gets the same
simulator, after a reset; `kept` gives tests the same unit object. A simulator lives as long as its
unit does: Amaranth does not elaborate a memory twice.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

from amaranth.sim import Simulator

PERIOD = 1e-6
KEPT = 16               # units that are kept in memory, each with its simulator
MADE_ONCE = "_made_once"
Testbench = Callable[[Any], Awaitable[None]]


@lru_cache(maxsize=KEPT)
def kept(kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The unit that `kind` makes of these arguments, made once."""
    return kind(*arguments, **options)


def once(unit: Any, make: Callable[..., Any], *arguments: Hashable) -> Any:
    """What `make` makes of the unit and the arguments, made once and kept with the unit."""
    made = unit.__dict__.setdefault(MADE_ONCE, {})
    key = (make, *arguments)
    if key not in made:
        made[key] = make(unit, *arguments)
    return made[key]


def simulate(unit: Any, *testbenches: Testbench, limit: int = 10_000,
             background: Sequence[Testbench] = ()) -> None:
    """Run until every testbench has returned; fail after `limit` cycles.

    Within a cycle, testbenches run in the order given, each seeing what the ones before it set,
    and then those in the `background`, which may run for ever.
    """
    simulation = once(unit, _Simulation, len(testbenches), len(background))
    try:
        simulation.run((*testbenches, *background, _watch(limit)))
    except BaseException:
        kept.cache_clear()      # its simulator may have stopped in the middle of a step
        del unit.__dict__[MADE_ONCE]
        raise


def _watch(limit: int) -> Testbench:
    async def watch(ctx: Any) -> None:
        await ctx.delay(limit * PERIOD)
        raise AssertionError(f"not finished after {limit} cycles")

    return watch


class _Simulation:
    """A simulator with places for testbenches, which change from run to run."""

    def __init__(self, unit: Any, foreground: int, background: int):
        self.testbenches: Sequence[Testbench] = ()
        self.simulator = Simulator(unit)
        self.simulator.add_clock(PERIOD)
        self.places = [self._place(number) for number in range(foreground + background + 1)]
        self.foreground = foreground
        self.is_new = True

    def _place(self, number: int) -> Testbench:
        async def testbench(ctx: Any) -> None:
            await self.testbenches[number](ctx)

        return testbench

    def run(self, testbenches: Sequence[Testbench]) -> None:
        self.testbenches = testbenches
        if self.is_new:
            for number, place in enumerate(self.places):
                self.simulator.add_testbench(place, background=number >= self.foreground)
            self.is_new = False
        else:
            self.simulator.reset()
        self.simulator.run()
