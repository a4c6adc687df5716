"""Limits: what a program needs is counted, and one that needs too much is refused at once."""

import numpy as np
import pytest

from microtron.base.errors import ExecutionError, MicrotronError
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, Buffer, Gemm, Load, Requantize, Store
from microtron.isa.memory_timing import MemoryTiming
from microtron.sim.counts import count, total
from microtron.sim.functional.simulator import Functional
from microtron.sim.limit import MOST, check_limit, generous_limit, least_cycles, work_of
from microtron.sim.simulate import simulate
from microtron.testing.campaign import long_case, random_config
from microtron.testing.random_programs import random_program

from .functional.support import program

COPY = program(tiny, Load(shape=(1, 1, 40)), memory=160)
ALL = (65535, 65535, 65535)
ENDLESS = {
    "alui": (AluI(loops=ALL), 65535**3),
    "gemm": (Gemm(count=65535, loops=ALL), 65535**4),
    "requantize": (Requantize(loops=ALL), 65535**3),
    "load": (Load(shape=(65535, 16, 8)), 65535 * 128),
    "border": (Load(shape=(65535, 0, 1), pad=(15, 0, 0, 7)), 65535 * 120),
    "store": (Store(shape=(65535, 65535, 1)), 65535**2),
}


def test_the_generous_limit_grows_with_the_work_and_has_an_end():
    usual = generous_limit(COPY, MemoryTiming())
    assert usual < 200_000
    assert generous_limit(COPY, MemoryTiming(stalls=250, read_latency=10_000)) > 10 * usual
    huge = Gemm(count=65535, loops=ALL)
    assert generous_limit(program(tiny, huge, huge), MemoryTiming()) == MOST


@pytest.mark.parametrize("name", ENDLESS)
def test_work_is_counted_without_being_done(name):
    instruction, work = ENDLESS[name]
    image = program(tiny, instruction, instruction, memory=4096)
    assert work_of(image).tolist() == [work, work, 0]
    assert total(work_of(image)) == 2 * work
    with pytest.raises(ExecutionError, match=f"needs {2 * work:,} tile operations, but the limit "
                                             f"is 1,000,000; it was not started: give a higher"):
        Functional(image, limit=10**6).run()


@pytest.mark.parametrize("name", ["alui", "gemm", "requantize", "store"])
def test_what_would_take_years_is_refused_by_default(name):
    image = program(tiny, ENDLESS[name][0], memory=4096)
    message = r"needs .*\d{3},\d{3} .*, but the limit is 10,000,000,000; .*--limit"
    if name != "store":
        with pytest.raises(ExecutionError, match=message):
            Functional(image).run()
    with pytest.raises(ExecutionError, match=message):
        simulate(image, memory=MemoryTiming(cycles_per_beat=64))


@pytest.mark.parametrize("seed", range(40))
def test_no_program_takes_fewer_cycles_than_are_counted(seed):
    config = random_config(seed)
    for image, timing in ((random_program(config, seed), MemoryTiming()),
                          (random_program(config, seed),
                           MemoryTiming(cycles_per_beat=3, shared=False)),
                          (long_case(config, seed).program, MemoryTiming())):
        least = least_cycles(image, timing, count(image.code, config, {}), config)
        cycles = simulate(image, memory=timing).cycles
        assert 0 <= least <= cycles <= generous_limit(image, timing)
        assert simulate(image, memory=timing, limit=cycles).cycles == cycles
        with pytest.raises(ExecutionError, match=rf"limit is {cycles - 1:,}|{cycles - 1:,} cycles"):
            simulate(image, memory=timing, limit=cycles - 1)


@pytest.mark.parametrize("limit", [0, -1, "5", 2.5, True, b"1"])
def test_a_limit_is_a_positive_integer(limit):
    for refused in (lambda: simulate(COPY, limit=limit), lambda: Functional(COPY, limit=limit)):
        with pytest.raises(MicrotronError, match=f"limit is {limit!r}, but must be an integer of "
                                                 f"1 or more"):
            refused()


def test_numpy_s_integers_are_integers():
    assert check_limit(np.int64(7)) == 7
    assert check_limit(None, 9) == 9


def test_a_limit_that_nothing_reaches_is_none():
    assert simulate(COPY, limit=10 ** 30) == simulate(COPY)


def test_a_sum_may_have_more_bits_than_a_word():
    assert total(np.array([2**64 - 1] * 3, np.uint64)) == 3 * (2**64 - 1)
    assert total(np.array([2**52, 2**52 - 1], np.uint64)) == 2**53 - 1
    assert total(np.zeros(0, np.uint64)) == 0


def test_counts_of_huge_programs_do_not_wrap():
    counts = count(program(tiny, *[Gemm(count=65535, loops=ALL)] * 3,
                           Load(buffer=Buffer.ACC, shape=ALL), memory=64).code, tiny, {})
    assert counts.tile_products == 3 * 65535**4
    assert counts.macs == 3 * 65535**4 * 16
    assert counts.bytes_loaded == {"acc": 65535**3 * 16}
