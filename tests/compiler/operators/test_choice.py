"""The choice of knobs: estimates in columns, and the fastest of a few candidates that differ."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators import choice
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.choice import (
    Candidate,
    candidates,
    diverse_candidates,
    estimates,
    fastest,
    longest_steps,
    rank_candidates,
)
from microtron.compiler.operators.convolution import conv2d, conv2d_schedule
from microtron.compiler.operators.dense import dense, dense_schedule
from microtron.compiler.operators.depthwise import depthwise, depthwise_schedule, grouped
from microtron.compiler.operators.elementwise import elementwise, elementwise_schedule
from microtron.compiler.operators.ends.cut_ends import FIRST, LAST
from microtron.compiler.operators.form import Template, runs_of
from microtron.compiler.operators.kernel import Options, _forms
from microtron.compiler.operators.pool import pool, pool_schedule
from microtron.compiler.operators.work import Work
from microtron.isa.config import Config, base, tiny
from microtron.isa.memory_timing import MemoryTiming

LAYER = conv2d.Conv2d(height=9, width=8, channels_in=10, channels_out=24, pad=(1, 1, 1, 1))
WHOLE_TILES = replace(LAYER, channels_in=12)         # so that rows are not packed instead
STRIDED = conv2d.Conv2d(height=8, width=12, channels_in=10, channels_out=9, kernel=(1, 1),
                        stride=(2, 2))
SPECS = {
    "conv2d": (conv2d_schedule.TEMPLATE, conv2d.form_of(LAYER, tiny)),
    "every other column": (conv2d_schedule.TEMPLATE,
                           conv2d.form_of(STRIDED, tiny, skip_columns=True)),
    "grouped": (conv2d_schedule.TEMPLATE, grouped.form_of(grouped.Grouped(
        height=5, width=6, channels_in=12, channels_out=12, groups=3), tiny, 1)),
    "depthwise": (depthwise_schedule.TEMPLATE, depthwise.form_of(depthwise.Depthwise(
        height=9, width=8, channels_in=10, channels_out=10), tiny)),
    "dense": (dense_schedule.TEMPLATE, dense.form_of(dense.Dense(
        rows=7, inputs=18, outputs=13), tiny)),
    "pool": (pool_schedule.TEMPLATE, pool.form_of(pool.Pool(
        kind=pool.Kind.AVERAGE, height=9, width=9, channels=6, kernel=(3, 3),
        pad=(1, 1, 1, 1)), tiny)),
    "add": (elementwise_schedule.TEMPLATE, elementwise.form_of(elementwise.Elementwise(
        operation=elementwise.Operation.ADD, channels=9, height=5, width=5), tiny)),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("memory", [MemoryTiming(), MemoryTiming(read_latency=100,
                                                                 cycles_per_beat=3)],
                         ids=["reference", "slow"])
def test_a_column_of_estimates_holds_those_of_its_candidates(name, memory):
    template, form = SPECS[name]
    found = candidates(template, form)
    together = rank_candidates(template, [form], memory)
    assert found
    assert together == sorted(together, key=lambda each: each.estimate)
    for each in together:
        assert each.knobs in found
        assert each.estimate == pytest.approx(float(template.estimate(form, each.knobs, memory)))
        assert template.fits(form, each.knobs)


@pytest.mark.parametrize("name", SPECS)
def test_the_longest_steps_are_nearly_as_fast_as_the_best(name):
    template, form = SPECS[name]
    found = longest_steps(template, form, MemoryTiming())
    cycles = dict(zip(candidates(template, form), estimates(template, form, MemoryTiming()),
                      strict=True))
    near = [knobs for knobs, each in cycles.items() if each <= 1.25 * min(cycles.values())]
    assert found in near

    def sizes(knobs):
        return np.prod([max(1, size) for size in np.hstack(
            [value for value in vars(knobs).values() if type(value) is not bool])])

    assert sizes(found) == max(map(sizes, near))


def test_slower_memory_makes_estimates_longer():
    template, form = SPECS["conv2d"]
    knobs = candidates(template, form)[0]
    slow = MemoryTiming(cycles_per_beat=4)
    assert template.estimate(form, knobs, slow) > template.estimate(form, knobs, MemoryTiming())


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
    chosen, result = fastest(ordered, compiled, least, cost)
    assert chosen.knobs.size == result.size
    return result.size, tried


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


def test_long_programs_are_tried_where_the_first_is_far_above_the_bound():
    far, near = (trial([cycles, 5_000], least=4_000, code=choice.INSTRUCTIONS)
                 for cycles in (10_000, 5_500))
    assert far == (2, [1, 2])
    assert near == (1, [1])


def test_an_estimate_that_is_too_low_says_nothing_of_others():
    assert trial([100, 80], [50, 60])[1] == [1, 2]
    assert trial([100, 80], [100, 120])[1] == [1]


def test_estimates_are_trusted_less_where_the_first_is_far_above_the_bound():
    assert trial([30_000, 20_000], [30_000, 32_500], least=10_000)[1] == [1, 2]
    assert trial([11_000, 10_500], [11_000, 11_900], least=10_000)[1] == [1]


def test_parts_of_wide_tiles_are_moved_one_by_one():
    """Of 16 blocks, four in a tile of memory: a run of three for each tile, or ten for a block."""
    assert runs_of(4, np.array([4, 8, 16, 6, 2]), 16, 3, 10).tolist() == [3, 6, 12, 60, 20]


def test_weights_in_many_runs_take_longer_with_few_bursts_in_flight():
    """Three quarters of the channels of each output block are a run."""
    form = conv2d.form_of(replace(LAYER, channels_in=16), replace(tiny, reads_in_flight=1))
    whole, part = (conv2d_schedule._weight_runs(form, knobs, knobs) for knobs in (
        conv2d_schedule.Knobs(blocks=6, rows=3, columns=8, depth=depth) for depth in (4, 3)))
    assert (whole, part) == (1, 6)


@pytest.mark.parametrize(("least", "tried"), [(99, [1]), (97, [1, 2, 4]), (50, [1, 2, 4])])
def test_what_is_close_to_the_bound_is_good_enough(least, tried):
    assert trial([100, 99.9, 99.8], least=least)[1] == tried


def test_a_candidate_whose_estimate_leaves_no_hope_is_not_tried():
    assert trial([100, 50, 20], [100, 104, 130])[1] == [1, 2]
    assert trial([100, 50, 20], [200, 208, 211])[1] == [1, 2]
    assert trial([100, 100, 20], [200, 208, 211])[1] == [1, 2, 4]


@pytest.mark.parametrize(("estimate", "sizes"), [(123, [1, 4]), (124, [1])])
def test_one_of_each_form_that_may_win_is_tried_however_long_the_others_are(estimate, sizes):
    """Estimates of other forms err otherwise."""
    ordered = [Candidate(99.0, "one way", Size(1)), Candidate(101.0, "one way", Size(2)),
               Candidate(estimate, "another way", Size(4)),
               Candidate(estimate, "another way", Size(8))]
    tried = []

    def compiled(candidate):
        tried.append(candidate.knobs.size)
        return Tried(tried[-1], 100 - tried[-1], (0,) * choice.INSTRUCTIONS * choice.PATIENCE)

    chosen, _ = fastest(ordered, compiled, 0, lambda program: program.cycles, thorough=True)
    assert tried == sizes
    assert chosen.knobs.size == sizes[-1]


def test_the_best_of_a_form_is_never_left_out():
    one, other = Way(50, tuple(range(60, 160))), Way(50, (190, 200))
    found = rank_candidates(STAND_IN, [one, other])
    assert len(found) == choice.LOOKED_AT + 1
    assert (found[-1].form, found[-1].estimate) == (other, 190)


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
    assert [each.knobs.size for each in diverse_candidates(ordered)] == [60, 200]
    other = [ordered[0], replace(ordered[1], form="another way")]
    assert diverse_candidates(other) == other[1:]


@dataclass(frozen=True)
class Way:
    """What stands for a form: its bound, the estimates of candidates of sizes 0, 1 …, which fit if
    they are no larger than `room`, and the factor of work that is left to the host."""

    least: int
    estimates: tuple[float, ...]
    handicap: float = 1.0
    room: int = 99
    config: Config = base
    spec: conv2d.Conv2d = LAYER
    looked_at: list[str] = field(default_factory=list, compare=False)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def work(self):
        return Work(macs=0, products=self.least, bytes=0, passes=0)


def estimates_of(form, knobs, memory):
    form.looked_at.append("here")
    return np.array(form.estimates)[knobs.size]


STAND_IN = Template(
    knobs=Size, largest=None, grids=lambda form: iter([Size(np.arange(len(form.estimates)))]),
    fits=lambda form, knobs: knobs.size < form.room, estimate=estimates_of, schedule=None)


def test_the_best_estimate_of_all_forms_comes_first():
    one, other = Way(50, (90, 70, 80)), Way(50, (75, 60))
    assert [(each.form is one, each.knobs.size, each.estimate)
            for each in rank_candidates(STAND_IN, [one, other])] == [
        (False, 1, 60), (True, 1, 70), (False, 0, 75), (True, 2, 80), (True, 0, 90)]


def test_work_that_is_left_to_the_host_counts():
    plain, folded = Way(50, (100.0,)), Way(50, (95.0,), handicap=1.25)
    assert [each.estimate for each in rank_candidates(STAND_IN, [folded, plain])] == [100, 118.75]
    assert rank_candidates(STAND_IN, [folded, plain])[0].form is plain


@pytest.mark.parametrize(("least", "handicap", "wanted"), [
    (79, 1.0, True), (80, 1.0, True), (81, 1.0, False), (65, 1.2, True), (70, 1.2, False)])
def test_a_form_that_cannot_be_better_is_not_looked_at(least, handicap, wanted):
    second = Way(least, (85.0,), handicap)
    rank_candidates(STAND_IN, [Way(50, (90.0, 80.0)), second])
    assert bool(second.looked_at) == wanted


def test_a_form_that_does_not_fit_leaves_the_others():
    found = rank_candidates(STAND_IN, [Way(1, (10.0,), room=0), Way(50, (90.0,))])
    assert [each.estimate for each in found] == [90]


@pytest.mark.parametrize(("needed", "message"), [
    ({"wgt_bytes": 1 << 19}, "wgt_bytes is 262144, which is 1024 tiles, but must be 524288 or"),
    ({"inp_bytes": 1 << 18, "wgt_bytes": 1 << 19}, "several scratchpads of this configuration"),
], ids=("one", "several"))
def test_the_scratchpad_to_blame_is_named_if_nothing_fits(needed, message):
    template = replace(STAND_IN, fits=lambda form, knobs: (knobs.size < 1) & all(
        getattr(form.config, name) >= size for name, size in needed.items()))
    with pytest.raises(CompileError, match=message):
        rank_candidates(template, [Way(1, (10.0,))])


@pytest.fixture(scope="module")
def asked():
    """A compilation that asks, with what it asked and what it was told."""
    told = {}

    def cost(program):
        told[program.code.tobytes()] = cycles = microtron.simulate(program).cycles
        return cycles
    return compile_op(WHOLE_TILES, tiny, cost=cost), told


def test_the_kernel_is_the_fastest_that_was_timed(asked):
    kernel, told = asked
    cuts = len(FIRST) + len(LAST)               # of the fastest one's ends
    assert choice.TRIALS < len(told) <= choice.TRIALS * choice.THOROUGH + cuts
    assert microtron.simulate(kernel.program).cycles == min(told.values())


def test_the_choice_is_the_same_every_time(asked):
    kernel, _ = asked
    again = microtron.compile_op(WHOLE_TILES, tiny)
    assert again.knobs == kernel.knobs
    assert np.array_equal(again.program.code, kernel.program.code)


def test_engines_that_take_turns_do_so_on_the_same_schedule(asked):
    kernel, _ = asked
    serial = microtron.compile_op(WHOLE_TILES, tiny, hide_latency=False)
    assert serial.knobs == kernel.knobs
    assert microtron.simulate(serial.program).cycles > microtron.simulate(kernel.program).cycles


def test_the_schedule_follows_the_memory_it_is_for():
    """With a long latency, runs of one tile do not fill the bus: columns are not skipped. A layer
    alone need not choose: the host leaves them out."""
    layer = conv2d.Conv2d(height=28, width=28, channels_in=64, channels_out=64, kernel=(1, 1),
                          stride=(2, 2))
    near, far = (operator_of(layer).compile_spec(layer, base, Options(
        memory=memory, cost=microtron.simulated_cost(memory))) for memory in (
            MemoryTiming(read_latency=32), MemoryTiming(read_latency=128)))
    slow = MemoryTiming(read_latency=128)
    assert (near.form.skips_columns, far.form.skips_columns) == (True, False)
    assert (microtron.simulate(far.program, memory=slow).cycles
            < microtron.simulate(near.program, memory=slow).cycles)


def test_kernels_that_were_built_are_found_by_value():
    spec = conv2d.Conv2d(height=6, width=6, channels_in=3, channels_out=8, kernel=(3, 3))
    operator, built = operator_of(spec), {}
    first = operator.compile_spec(spec, tiny, Options(built=built))
    before = dict(built)
    _forms.cache_clear()
    assert operator.compile_spec(replace(spec), tiny, Options(built=built)) is first
    assert built == before
    forms = operator.forms_of(spec, tiny)
    assert len({form.key for form in forms}) == len(forms) > 1
    other = operator.compile_spec(replace(spec, stride=(2, 2)), tiny, Options(built=built))
    assert other is not first
    assert len(built) > len(before)
