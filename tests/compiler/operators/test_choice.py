"""The choice of knobs: estimates in columns, and the fastest of a few candidates that differ."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import microtron
from microtron.compiler.operators import (
    choice,
    conv2d,
    conv2d_schedule,
    dense,
    dense_schedule,
    depthwise,
    elementwise,
    grouped,
    pool,
    pool_schedule,
)
from microtron.compiler.operators.build import compile_conv2d
from microtron.compiler.operators.choice import Candidate, candidates, different, fastest, ranked
from microtron.isa.config import base, tiny
from microtron.isa.errors import ExecutionError
from microtron.isa.timing import MemoryTiming

LAYER = conv2d.Conv2d(height=9, width=8, channels_in=10, channels_out=24, pad=(1, 1, 1, 1))
STRIDED = conv2d.Conv2d(height=8, width=12, channels_in=10, channels_out=9, kernel=(1, 1),
                        stride=(2, 2))
SPECS = {
    "conv2d": (conv2d_schedule, conv2d.expressions(LAYER, tiny)),
    "every other column": (conv2d_schedule,
                           conv2d.expressions(STRIDED, tiny, skip_columns=True)),
    "grouped": (conv2d_schedule, grouped.expressions(grouped.Grouped(
        height=5, width=6, channels_in=12, channels_out=12, groups=3), tiny, 1)),
    "depthwise": (depthwise, depthwise.expressions(depthwise.Depthwise(
        height=9, width=8, channels_in=10, channels_out=10), tiny)),
    "dense": (dense_schedule, dense.expressions(dense.Dense(
        rows=7, inputs=18, outputs=13), tiny)),
    "pool": (pool_schedule, pool.expressions(pool.Pool(
        kind=pool.Kind.AVERAGE, height=9, width=9, channels=6, kernel=(3, 3),
        pad=(1, 1, 1, 1)), tiny)),
    "add": (elementwise, elementwise.expressions(elementwise.Elementwise(
        operation=elementwise.Operation.ADD, channels=9, height=5, width=5), tiny)),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("memory", [MemoryTiming(), MemoryTiming(read_latency=100,
                                                                 cycles_per_beat=3)],
                         ids=["reference", "slow"])
def test_a_column_of_estimates_holds_those_of_its_candidates(name, memory):
    template, what = SPECS[name]
    found = candidates(template, what)
    together = ranked(template, [what], memory)
    assert found
    assert together == sorted(together, key=lambda each: each.estimate)
    for each in together:
        assert each.knobs in found
        assert each.estimate == pytest.approx(float(template.estimate(what, each.knobs, memory)))
        assert template.fits(what, each.knobs)


def test_slower_memory_makes_estimates_longer():
    template, what = SPECS["conv2d"]
    knobs = candidates(template, what)[0]
    slow = MemoryTiming(cycles_per_beat=4)
    assert template.estimate(what, knobs, slow) > template.estimate(what, knobs, MemoryTiming())


def test_knobs_are_plain_numbers():
    for each in candidates(*SPECS["conv2d"])[:20]:
        assert {type(value) for value in vars(each).values()} <= {int, bool}


@dataclass(frozen=True)
class Size:
    size: int


@dataclass(frozen=True)
class Tried:
    """What stands for a kernel, and for its program: as long as `code`, as slow as `cycles`."""

    size: int
    cycles: int
    code: tuple[int, ...] = (0,) * 10

    @property
    def program(self):
        return self


def trial(cycles, estimates=None, least=0, code=10, cost=lambda program: program.cycles):
    """Candidates of sizes 1, 2, 4 … that take so many cycles: which was taken, which were tried."""
    tried = []

    def compiled(candidate):
        tried.append(candidate.knobs.size)
        return Tried(candidate.knobs.size, cycles[len(tried) - 1], (0,) * code)

    ordered = [Candidate(estimate, None, Size(1 << place))
               for place, estimate in enumerate(estimates or [100.0] * len(cycles))]
    return fastest(ordered, compiled, least, cost).size, tried


def test_without_anybody_to_ask_the_best_estimate_is_taken():
    assert trial([100, 50, 20], cost=None) == (1, [1])


def test_the_fastest_of_a_few_is_taken():
    assert trial([100, 120, 80]) == (4, [1, 2, 4])
    assert trial([100, 120, 110]) == (1, [1, 2, 4])


def test_no_more_are_tried_than_allowed():
    _, tried = trial(list(range(1000, 900, -1)))
    assert len(tried) == choice.TRIALS


def test_long_programs_are_not_tried_again_and_again():
    assert trial([100, 50], code=choice.INSTRUCTIONS) == (1, [1])


@pytest.mark.parametrize(("least", "tried"), [(99, [1]), (97, [1, 2, 4]), (50, [1, 2, 4])])
def test_what_is_close_to_the_bound_is_good_enough(least, tried):
    assert trial([100, 99.9, 99.8], least=least)[1] == tried


def test_a_candidate_whose_estimate_leaves_no_hope_is_not_tried():
    assert trial([100, 50, 20], [100, 104, 130])[1] == [1, 2]
    assert trial([100, 50, 20], [200, 208, 211])[1] == [1, 2]
    assert trial([100, 100, 20], [200, 208, 211])[1] == [1, 2, 4]


def test_a_program_that_cannot_run_is_passed_over():
    def cost(program):
        if program.size != 2:
            raise ExecutionError("too many tokens")
        return program.cycles
    assert trial([100, 90, 80], cost=cost)[0] == 2


def test_if_no_program_can_run_it_is_said_why():
    def cost(program):
        raise ExecutionError(f"no {program.size}")
    with pytest.raises(ExecutionError, match="no 1"):
        trial([100, 90, 80], cost=cost)


def test_candidates_that_are_nearly_the_same_are_no_different_ideas():
    sizes = [100, 101, 120, 80, 60, 125, 200]
    ordered = [Candidate(1.0, None, Size(size)) for size in sizes]
    assert [each.knobs.size for each in different(ordered)] == [60, 200]
    other = [ordered[0], replace(ordered[1], what="another way")]
    assert different(other) == other[1:]


@pytest.fixture(scope="module")
def asked():
    """A compilation that asks, with what it asked and what it was told."""
    told = {}

    def cost(program):
        told[program.code.tobytes()] = cycles = microtron.simulate(program).cycles
        return cycles
    return compile_conv2d(LAYER, tiny, cost=cost), told


def test_the_kernel_is_the_fastest_that_was_timed(asked):
    kernel, told = asked
    assert 1 < len(told) <= choice.TRIALS
    assert microtron.simulate(kernel.program).cycles == min(told.values())


def test_the_choice_is_the_same_every_time(asked):
    kernel, _ = asked
    again = microtron.compile_op(LAYER, tiny)
    assert again.knobs == kernel.knobs
    assert np.array_equal(again.program.code, kernel.program.code)


def test_engines_that_take_turns_do_so_on_the_same_schedule(asked):
    kernel, _ = asked
    serial = microtron.compile_op(LAYER, tiny, hide_latency=False)
    assert serial.knobs == kernel.knobs
    assert microtron.simulate(serial.program).cycles > microtron.simulate(kernel.program).cycles


def test_the_schedule_follows_the_memory_it_is_for():
    """With a long latency, runs of one tile do not fill the bus: columns are not skipped."""
    layer = conv2d.Conv2d(height=28, width=28, channels_in=64, channels_out=64, kernel=(1, 1),
                          stride=(2, 2))
    near, far = (microtron.compile_op(layer, base, memory=MemoryTiming(read_latency=latency))
                 for latency in (32, 128))
    slow = MemoryTiming(read_latency=128)
    assert near.knobs != far.knobs
    assert (microtron.simulate(far.program, memory=slow).cycles
            < microtron.simulate(near.program, memory=slow).cycles)
