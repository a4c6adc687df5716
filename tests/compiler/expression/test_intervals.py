"""Ranges of indices: never too narrow, and exact where indices are affine."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import (
    Axis,
    Binary,
    Constant,
    both,
    maximum,
    minimum,
    select,
)
from microtron.compiler.expression.intervals import implied_intervals, interval_of

from .indices import AFFINE_INDICES, CONDITIONS, INDICES, values

i, j = Axis("i", 5), Axis("j", 3)


@given(INDICES)
def test_a_range_is_never_too_narrow(index):
    low, high = interval_of(index, {})
    assert all(low <= value <= high for value, in values(index))


@given(AFFINE_INDICES)
def test_the_range_of_an_affine_index_is_exact(index):
    found = [value for value, in values(index)]
    assert interval_of(index, {}) == (min(found), max(found))


@given(CONDITIONS, INDICES)
def test_a_range_under_a_condition_is_never_too_narrow(condition, index):
    holds = [value for truth, value in values(condition, index) if truth]
    assume(holds)
    low, high = interval_of(index, implied_intervals(condition, {}))
    assert low <= min(holds)
    assert high >= max(holds)


@given(CONDITIONS)
def test_what_a_condition_implies_is_true_wherever_it_holds(condition):
    for expression, (low, high) in implied_intervals(condition, {}).items():
        assert all(low <= value <= high
                   for truth, value in values(condition, expression) if truth)


@pytest.mark.parametrize(("index", "interval"), [
    (i * 3 - j, (-2, 12)), (i - i, (0, 0)), (i * 4 + j - i * 4, (0, 2)),
    ((i - 2) // 2, (-1, 1)), ((i + 5) % 10, (5, 9)), ((i + 6) % 10, (0, 9)),
    (minimum(i, j), (0, 2)), (maximum(i, j), (0, 4)), ((i - 2) * (j - 1), (-2, 2)),
    (select(i < 3, i, 0), (0, 2)),
])
def test_known_ranges(index, interval):
    assert interval_of(index, {}) == interval


def test_a_condition_narrows_both_of_its_sides():
    known = implied_intervals(i < j, {})
    assert interval_of(i, known) == (0, 1)
    assert interval_of(j, known) == (1, 2)


def test_a_condition_on_a_sum_says_something_of_the_same_sum_elsewhere():
    known = implied_intervals(both(i * 2 + j >= 3, i * 2 + j < 8), {})
    assert interval_of(i * 2 + j, known) == (3, 7)
    assert interval_of(j + i * 2 - 3, known) == (0, 4)


def test_a_condition_on_a_sum_says_something_of_its_multiples():
    k = Axis("k", 3)
    known = implied_intervals(both(i * 3 + j < 4, k < 2), {})
    assert interval_of(i * 6 + j * 2 + k, known) == (0, 7)
    assert interval_of(k - j - i * 3, known) == (-3, 1)


def test_conditions_on_two_sums_say_something_of_their_sum():
    k, m = Axis("k", 4), Axis("m", 4)
    known = implied_intervals(both(i * 3 + j < 4, k * 4 + m < 7), {})
    assert interval_of((i * 3 + j) * 10 + k * 4 + m - 1, known) == (-1, 35)


def test_an_equality_pins_a_side():
    assert interval_of(i + 1, implied_intervals(i.equals(3), {})) == (4, 4)


def test_conditions_that_never_hold_leave_numbers_what_they_are():
    assert interval_of(i // 2, implied_intervals(both(i >= 3, i < 2), {}))[1] <= 2


def test_a_condition_on_numbers_says_nothing():
    assert implied_intervals(Binary("<", Constant(1, "int8"), Constant(2, "int8")), {}) == {}


@pytest.mark.parametrize(("index", "message"), [
    (i // j, "(i // j): an index is divided by positive constants only"),
    (i % (j + 1), "an index is divided by positive constants only"),
    (i << 2, "(i << 2) is not an index: only +, -, *, //, %, min, max and select"),
    (i.cast("float32").cast("index"), "index(float32(i)) is not an index"),
])
def test_what_has_no_range_is_refused(index, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        interval_of(index, {})
