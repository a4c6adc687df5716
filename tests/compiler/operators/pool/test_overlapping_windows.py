"""Windows that overlap: every result has all of its elements, in fewer steps than one by one."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.operators.pool.overlapping_windows import (
    count_steps,
    interleaved_steps,
    least_steps,
    sliding_steps,
)
from microtron.compiler.operators.pool.pool import Pool
from microtron.compiler.operators.pool.pool_schedule import OPERATOR, Knobs
from microtron.isa.config import base, tiny

from ..operations import check


def elements_of(steps):
    """What each result is combined from."""
    found = {}
    for step in steps:
        for indices in product(*(range(walk.extent) for walk in step.loops)):
            target, source, element = (None if first is None else first + sum(
                index * walk[side] for index, walk in zip(indices, step.loops, strict=True))
                for first, side in ((step.target, 1), (step.source, 1), (step.element, 2)))
            found[target] = Counter([element]) + (Counter() if source is None else found[source])
    return found


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 3, 5, 8, 13])
def test_every_result_has_each_of_its_elements_once(taps, stride):
    for results in (1, 2, 3, 7, 8, 13, 20):
        expected = {each: Counter(range(each * stride, each * stride + taps))
                    for each in range(results)}
        steps = sliding_steps(results, taps, stride)
        assert elements_of(steps) == expected
        assert sum(count_steps(steps)) <= results * taps
        assert elements_of(interleaved_steps(results, taps, stride, None, 2)) == expected


@pytest.mark.parametrize(("results", "taps", "stride", "before"), [
    (13, 13, 1, 6), (13, 9, 1, 4), (13, 5, 1, 2), (7, 5, 2, 3), (1, 3, 1, 1), (2, 7, 1, 4),
    (6, 3, 2, 1), (5, 9, 3, 8)])
def test_a_border_is_left_out(results, taps, stride, before):
    for after in range(taps):
        last = (results - 1) * stride + taps - 1 - after
        windows = [range(max(before, each * stride), min(last, each * stride + taps - 1) + 1)
                   for each in range(results)]
        if all(windows):
            expected = {each: set(window) for each, window in enumerate(windows)}
            for steps in (sliding_steps(results, taps, stride, (before, last)),
                          interleaved_steps(results, taps, stride, (before, last), 2)):
                assert {each: set(found) for each, found in elements_of(steps).items()} == expected


@pytest.mark.parametrize(("windows", "steps"), [
    ((4, 5, 1), (1, 9)), ((2, 3, 1), (1, 3)), ((2, 3, 2), (1, 4)), ((3, 2, 2), (3, 3)),
    ((13, 13, 1, (6, 18)), (2, 23)), ((8, 3, 1), (4, 12)), ((3, 9, 1), (1, 11)),
    ((7, 5, 1), (2, 16)), ((3, 3, 1), (2, 5)), ((6, 13, 1), (1, 23))])
def test_steps_that_copy_and_steps_that_combine(windows, steps):
    assert count_steps(sliding_steps(*windows)) == steps


@pytest.mark.parametrize(("taps", "stride"), [(2, 1), (3, 1), (5, 1), (5, 2), (9, 1), (13, 2)])
def test_no_steps_are_fewer_than_those_that_cannot_be_shared(taps, stride):
    results = 24
    _, combined = count_steps(sliding_steps(results, taps, stride))
    least = least_steps((1, taps), (1, stride), (1, results))
    assert results + (least - 1) * (results - taps) <= combined


@pytest.mark.parametrize(("kernel", "stride", "windows", "steps"), [
    ((1, 2), (1, 1), (1, 9), 1), ((1, 3), (1, 1), (1, 9), 1 + 1 / 2),
    ((1, 5), (1, 1), (1, 9), 1 + 1 / 3 + 1 / 4 + 1 / 4), ((1, 5), (1, 1), (1, 1), 4),
    ((1, 4), (1, 4), (1, 9), 3), ((3, 3), (1, 1), (9, 9), 2 + 2 / 3)])
def test_parts_cost_a_window_a_share(kernel, stride, windows, steps):
    """Of 5 elements, 3 and 2: three windows contain 3 elements in a row, and four contain 2."""
    assert least_steps(kernel, stride, windows) == pytest.approx(steps)


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize(("kernel", "stride", "pad", "dilation"), [
    ((5, 5), 1, 2, 1), ((3, 3), 2, 1, 1), ((1, 4), 1, (0, 0, 3, 1), 1),
    ((4, 1), 1, (1, 2, 0, 0), 1),
    ((3, 5), (1, 2), (0, 1, 2, 0), 1), ((3, 3), 2, 2, 2), ((4, 3), 1, (3, 3, 1, 1), 1)])
def test_pools_of_windows_that_overlap(kind, kernel, stride, pad, dilation):
    spec = Pool(kind=kind, height=7, width=6, channels=3, kernel=kernel, stride=stride, pad=pad,
                dilation=dilation)
    form = OPERATOR.forms_of(spec, tiny)[0]
    rows, columns = spec.out_shape
    for size in ((rows, columns), (rows, -(-columns // 2)), (-(-rows // 2), columns), (1, columns)):
        check(spec, tiny, form=form, knobs=Knobs(blocks=1, rows=size[0], columns=size[1],
                                                 window=spec.kernel, doubled=False))


def test_a_large_window_over_a_small_image_needs_few_passes():
    """13 × 13 windows of 13 × 13 pixels: 25 steps for 13 results along an axis."""
    spec = Pool(kind="max", height=13, width=13, channels=16, kernel=13, pad=6)
    form = OPERATOR.forms_of(spec, base)[0]
    assert form.steps_along(0, 13, clipped=True) == (2, 23)
    check(spec, base)


@pytest.mark.parametrize("config", [tiny, replace(tiny, block_out=8, acc_bytes=16 << 10)],
                         ids=["4 × 4", "4 × 8"])
@pytest.mark.parametrize(("height", "width", "stride"), [
    (4, 5, 2), (5, 4, 2), (6, 7, 3), (5, 6, (2, 3))])
def test_what_no_window_reaches_is_not_touched(config, height, width, stride):
    check(Pool(kind="max", height=height, width=width, channels=12, kernel=2, stride=stride),
          config)


@given(data=st.data())
def test_any_pool_that_takes_an_image_whole(data):
    kernel, stride = (data.draw(st.tuples(each, each)) for each in (
        st.integers(2, 5), st.integers(1, 4)))
    pad = tuple(data.draw(st.integers(0, size - 1)) for size in kernel for _ in range(2))
    sizes = (data.draw(st.integers(max(1, size - sum(pad[2 * axis:2 * axis + 2])), 9))
             for axis, size in enumerate(kernel))
    spec = Pool(kind=data.draw(st.sampled_from(["max", "average"])), channels=3, kernel=kernel,
                stride=stride, pad=pad, **dict(zip(("height", "width"), sizes, strict=True)))
    form = OPERATOR.forms_of(spec, tiny)[0]
    check(spec, tiny, form=form, knobs=Knobs(
        blocks=1, rows=spec.out_shape[0], columns=spec.out_shape[1], window=spec.kernel,
        doubled=False))
