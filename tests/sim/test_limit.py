"""The limit of a run's cycles: far above any need, in proportion to the work."""

from microtron.isa.config import tiny
from microtron.isa.instructions import Gemm, Load
from microtron.isa.timing import MemoryTiming
from microtron.sim.limit import MOST, generous_limit

from .functional.support import program

COPY = program(tiny, Load(shape=(1, 1, 40)), memory=160)


def test_the_limit_grows_with_the_work_and_has_an_end():
    usual = generous_limit(COPY, MemoryTiming())
    assert usual < 200_000
    assert generous_limit(COPY, MemoryTiming(stalls=250, read_latency=10_000)) > 10 * usual
    huge = Gemm(count=65535, loops=(65535, 65535, 65535))
    assert generous_limit(program(tiny, huge, huge), MemoryTiming()) == MOST
