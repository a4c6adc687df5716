"""Cycles of layers: shared out so that they add up, and written so that they fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtron
from microtron.runtime.reports.layers import attribute_cycles, inspect_model
from microtron.runtime.reports.units import abbreviate
from microtron.sim.simulate import simulate

from ..small_model import small_graph

REPORT = simulate(microtron.compile(small_graph(), "tiny").programs[0])


def report(ends, cycles):
    timeline = replace(REPORT.timeline, end=np.array(ends, np.int64))
    return replace(REPORT, timeline=timeline, cycles=cycles)


@pytest.mark.parametrize(("starts", "ends", "cycles", "shares"), [
    ([0], [3, 4, -1], 9, [9]),                          # a sync has no end
    ([0, 1], [3, 8, -1], 9, [3, 6]),
    ([0, 2, 3], [5, 9, 7, 20, -1], 25, [9, 0, 16]),     # the second was done before the first
    ([2, 3], [5, 9, 7, 20, -1], 25, [9, 16]),           # what comes before belongs to the first
])
def test_a_layer_takes_from_the_end_of_those_before_to_its_own(starts, ends, cycles, shares):
    assert attribute_cycles(starts, report(ends, cycles)) == shares


@given(st.lists(st.integers(-1, 50), min_size=1, max_size=30), st.data())
def test_shares_add_up_and_are_never_negative(ends, data):
    starts = sorted(data.draw(st.sets(st.integers(0, len(ends) - 1), min_size=1)))
    shares = attribute_cycles(starts, report(ends, 60))
    assert len(shares) == len(starts)
    assert sum(shares) == 60
    assert min(shares) >= 0


def test_another_memory_gives_other_cycles():
    model = microtron.compile(small_graph(), "tiny")
    slow = inspect_model(model, replace(model.memory, read_latency=500))
    assert slow.cycles > inspect_model(model).cycles + 400


@given(st.integers(0, 10 ** 15 - 1) | st.floats(0, 1e14))
def test_a_number_takes_six_characters(number):
    assert len(abbreviate(number)) <= 6


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (9_999, "9,999"), (10_000, "10.0k"), (123_456, "123k"), (1_234_567, "1.23M"),
    (99_960_000, "100.0M"), (5_000_000_000, "5.00G"), (None, "")])
def test_numbers_keep_three_digits(number, text):
    assert abbreviate(number) == text
