"""Pools: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import microtron
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.pool.pool import (
    Kind,
    Pool,
    division,
    form_of,
    global_average,
)
from microtron.compiler.operators.pool.pool_schedule import Knobs
from microtron.isa.arithmetic import scale_array
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Rounding
from microtron.isa.stream import decode

from ..operations import check, check_meaning
from ..references import round_away, round_to_even

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)
CONFIGS = [tiny, TALL, FLAT]
WINDOWS = [
    {"kernel": (2, 2), "stride": (2, 2)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1, 1, 1)},
    {"kernel": (3, 3), "pad": (1, 1, 1, 1), "low": -10, "high": 20},
    {"kernel": (3, 2), "stride": (1, 2), "pad": (0, 1, 1, 0)},
    {"kernel": (2, 3), "pad": (1, 0, 0, 0)},
    {"kernel": (3, 2), "stride": (1, 2), "dilation": (2, 2), "pad": (1, 1, 1, 1)},
    {"kernel": (1, 1), "stride": (3, 3)},
    {"kernel": (9, 10)},
    {"kernel": (1, 5), "pad": (0, 0, 2, 2)},
    {"kernel": (6, 1)},
]


def spec_for(kind, window, **fields):
    return Pool(**{"kind": kind, "height": 9, "width": 10, "channels": 11, "images": 3} | window
                | fields)


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("kind", Kind)
def test_a_pool_is_numpys_whatever_its_window(kind, window, config):
    check(spec_for(kind, window), config)


@pytest.mark.parametrize("window", WINDOWS[1:6], ids=str)
def test_padding_counts_if_it_is_said_to(window):
    check(spec_for(Kind.AVERAGE, window, count_include_pad=True), tiny)


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_ties_of_an_average_go_to_the_even_neighbour_if_they_should(window, config):
    check(spec_for(Kind.AVERAGE, window, rounding=Rounding.EVEN, zero_point_in=3), config)


def test_eight_and_a_half_is_eight_if_ties_go_to_even():
    """51 / 6: no multiplier is 1/6, so one multiplication alone cannot find the tie."""
    values = np.array([[8, 8, 9], [9, 9, 8]]).reshape(1, 1, 2, 3)
    for rounding, right in ((Rounding.EVEN, 8), (Rounding.AWAY, 9)):
        spec = Pool(kind="average", height=2, width=3, channels=1, kernel=(2, 3),
                    rounding=rounding)
        result, _ = microtron.compile_op(spec, tiny).run({"data": values})
        assert result.ravel() == [right]


def test_a_padded_average_that_rounds_to_even_is_numpys_rint_everywhere():
    """Windows of 4, 6 and 9 elements: ties lie at borders and in corners."""
    spec = Pool(kind=Kind.AVERAGE, height=28, width=28, channels=16, kernel=3, pad=1,
                rounding=Rounding.EVEN)
    data = np.random.default_rng(0).integers(-128, 128, (1, 16, 28, 28), np.int8)
    rows = columns = spec.counts(0)
    padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    sums = sum(padded[:, :, i:i + 28, j:j + 28] for i, j in np.ndindex(3, 3))
    quotients = sums / (rows[:, None] * columns)    # exact on ties, and never wrong across one
    assert (quotients % 1 == 0.5).sum() > 100
    result, _ = microtron.compile_op(spec, tiny).run({"data": data})
    np.testing.assert_array_equal(result, np.rint(quotients))


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("rounding", Rounding)
def test_an_average_may_change_scale_and_zero_point(rounding, counted):
    check(spec_for(Kind.AVERAGE, WINDOWS[2], scale_in=0.3, scale_out=0.2, zero_point_in=9,
                   zero_point_out=-5, rounding=rounding, count_include_pad=counted), tiny)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("window", [WINDOWS[1], WINDOWS[2], WINDOWS[7]], ids=str)
@pytest.mark.parametrize("knobs", [
    Knobs(blocks=1, rows=2, columns=2, window=(3, 3)),
    Knobs(blocks=2, rows=3, columns=1, window=(2, 2)),
    Knobs(blocks=3, rows=1, columns=4, window=(1, 3), doubled=False)], ids=str)
def test_knobs_do_not_change_what_is_computed(kind, window, knobs):
    spec = spec_for(kind, window, images=1)
    rows, columns = (min(size, extent) for size, extent in zip(
        (knobs.rows, knobs.columns), spec.out_shape, strict=True))
    check(spec, tiny, knobs=replace(knobs, rows=rows, columns=columns))


@pytest.mark.parametrize("window", WINDOWS[:3], ids=str)
@pytest.mark.parametrize("kind", Kind)
def test_the_cycle_device_computes_the_same(kind, window):
    check(spec_for(kind, window), TALL, "cycle")


def test_a_window_larger_than_the_accumulator_is_combined_in_parts():
    few = replace(tiny, acc_bytes=1 << 10)
    check(global_average(height=40, width=13, channels=5), few)
    check(global_average(height=3, width=300, channels=5), few)


def test_few_tiles_are_used_without_double_buffers():
    few = replace(tiny, acc_bytes=128, acc_banks=1)
    spec = Pool(kind=Kind.AVERAGE, height=5, width=5, channels=5, kernel=(2, 1), pad=(1, 0, 0, 0),
                rounding=Rounding.TWICE)            # so that every position has parameters
    kernel, _ = check(spec, few)
    assert not kernel.knobs.doubled


@pytest.mark.parametrize("size", [1, 7, 8])
def test_a_global_average_divides_by_the_whole_image(size):
    check(global_average(height=size, width=size, channels=9, images=2), TALL)


COUNTS = (*range(1, 130), 196, 3136, 12544, 1 << 20, (1 << 21) - 1, 1 << 21)


def sums_over(count):
    """Many sums that so many elements can have, whatever their zero point is: among them all ties
    and what lies beside them."""
    most, ties = 255 * count, np.arange(-510, 511) * count // 2
    some = np.arange(-most, most + 1, count // 16 | 1)
    return np.unique(np.concatenate([some, ties - 1, ties, ties + 1]).clip(-most, most))


def test_division_rounds_every_sum_as_integers_do():
    for count in COUNTS:
        sums = sums_over(count)
        np.testing.assert_array_equal(scale_array(sums, *division(count), Rounding.AWAY),
                                      round_away(sums, count), f"divided by {count}")


def test_divisions_up_and_down_differ_on_ties_alone():
    """So half of their sum lies on a tie where the average does, and rounds to even as that."""
    for count in COUNTS:
        sums = sums_over(count)
        up, down = (scale_array(sums, *division(count, up=way), Rounding.EVEN).astype(np.int64)
                    for way in (True, False))
        if count & count - 1:               # no power of two, which has an exact multiplier
            ties = (2 * sums % count == 0) & (sums % count != 0)
            np.testing.assert_array_equal(up != down, ties, f"divided by {count}")
        np.testing.assert_array_equal(scale_array(up + down, *division(2), Rounding.EVEN),
                                      round_to_even(sums, count), f"divided by {count}")


@pytest.mark.parametrize("spec", [
    spec_for(kind, window) for kind in Kind for window in (WINDOWS[1], WINDOWS[2])] + [
    spec_for(Kind.AVERAGE, WINDOWS[2], rounding=Rounding.EVEN)], ids=str)
def test_the_expressions_mean_what_the_program_computes(spec):
    check_meaning(spec, form_of(spec, replace(tiny, batch=2)))


@pytest.mark.parametrize("rounding", [Rounding.AWAY, Rounding.EVEN])
def test_positions_have_factors_or_parameters_of_their_own(rounding):
    spec = spec_for(Kind.AVERAGE, WINDOWS[2], rounding=rounding, zero_point_in=-7)
    for by_factors in (True, False):
        form = form_of(spec, tiny, by_factors=by_factors)
        assert (form.factors is not None) == by_factors
        assert (form.parameters.shape[:2] == (1, 1)) == by_factors
        check_meaning(spec, form)


def test_windows_outside_the_image_are_refused():
    with pytest.raises(CompileError, match="windows that lie outside the image altogether"):
        spec_for(Kind.MAX, {"kernel": (2, 2), "pad": (2, 0, 0, 0)})


def test_a_window_larger_than_the_image_is_refused():
    with pytest.raises(CompileError, match="reaches over 12 × 2, more than the padded input"):
        spec_for(Kind.MAX, {"kernel": (12, 2)})


def test_the_maximum_of_resnets_first_block_keeps_bus_and_alu_busy():
    spec = Pool(kind=Kind.MAX, height=56, width=56, channels=32, kernel=(3, 3), stride=(2, 2),
                pad=(1, 1, 1, 1))
    _, (report,) = check(spec, base, "cycle")
    bytes_moved = 32 * (56 * 56 + 28 * 28)
    assert report.cycles * 0.8 < bytes_moved / base.bus_bytes


@pytest.mark.parametrize("kernel", [(2, 2), (1, 3), (3, 3)])
def test_the_first_element_of_a_window_is_copied_and_no_constant_combined(kernel):
    spec = Pool(kind=Kind.MAX, height=12, width=12, channels=4, kernel=kernel, stride=(2, 2))
    words = list(decode(check(spec, tiny)[0].program.code))
    steps = [each for each in words if isinstance(each, Alu)]
    assert not any(isinstance(each, AluI) for each in words)
    taken = {op: sum(prod(each.loops) for each in steps if each.op == op)
             for op in (AluOp.MOVE, AluOp.MAX)}
    outputs = prod(spec.out_shape)
    assert taken == {AluOp.MOVE: outputs, AluOp.MAX: outputs * (prod(kernel) - 1)}


def test_both_passes_of_a_large_window_read_two_banks():
    spec = Pool(kind=Kind.MAX, height=13, width=13, channels=64, kernel=(5, 5), pad=(2,) * 4)
    _, (report,) = check(spec, base, "cycle")
    down, across = 17 * 5, 13 * 5
    assert report.cycles <= 1.15 * 4 * 13 * (down + across + 13)
