"""A program on the bench against the functional simulator."""

from microtron.isa.registers import Status
from microtron.sim.functional.simulator import Functional


async def compare(bench, program):
    """Run a program: all memory must be as the functional simulator leaves it."""
    expected = Functional(program)
    await bench.load(program, expected.memory.segments)
    expected.run()
    await bench.start()
    assert await bench.stopped() == Status.DONE | Status.INTERRUPT
    bench.assert_memory(expected.memory.segments)
