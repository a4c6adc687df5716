"""Knobs that somebody chose: each has a range, which a refusal names."""

from dataclasses import fields, replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.knob_checks import check_knobs

from .test_choice import SPECS


def knobs_by_name():
    return [(name, field.name) for name, (template, _) in SPECS.items()
            for field in fields(template.knobs)]


def change(name, knob, value):
    template, form = SPECS[name]
    return template, form, replace(template.largest(form), **{knob: value})


@pytest.mark.parametrize("name", SPECS)
def test_all_candidates_and_the_largest_knobs_are_within_the_ranges(name):
    template, form = SPECS[name]
    largest = template.largest(form)
    assert check_knobs(template, form, largest) == largest
    for knobs in candidates(template, form):
        assert check_knobs(template, form, knobs) == knobs


@pytest.mark.parametrize(("name", "knob"), knobs_by_name())
def test_a_value_out_of_range_is_refused_by_name_and_range(name, knob):
    template, form = SPECS[name]
    largest = getattr(template.largest(form), knob)
    words = {bool: "True or False", tuple: "2 numbers"}.get(
        type(largest), rf"from [01] to {largest}")
    for wrong in (-1, 10 ** 6, 1.5, "2", None, (1, 2, 3)):
        with pytest.raises(CompileError, match=f"{form.spec.operator}: knob {knob} is .*, but "
                                               f"must be {words}$"):
            check_knobs(*change(name, knob, wrong))


@pytest.mark.parametrize(("name", "knob"), [
    each for each in knobs_by_name() if each[1] in ("blocks", "rows", "columns", "depth", "tiles")])
def test_nothing_at_once_is_refused_and_one_is_taken(name, knob):
    template, form = SPECS[name]
    most = getattr(template.largest(form), knob)
    for wrong in (0, most + 1, True):
        with pytest.raises(CompileError, match=rf"knob {knob} is {wrong}, but must be from 1 to "
                                               rf"{most}$"):
            check_knobs(*change(name, knob, wrong))
    taken = getattr(check_knobs(*change(name, knob, np.int64(1))), knob)
    assert (taken, type(taken)) == (1, int)


def test_both_sides_of_a_window_have_a_range():
    for window, place in (((0, 1), 0), ((1, 4), 1)):
        with pytest.raises(CompileError, match=rf"knob window\[{place}\] is {window[place]}, but "
                                               rf"must be from 1 to 3"):
            check_knobs(*change("pool", "window", window))


def test_taps_may_be_zero_which_is_all_of_them():
    assert check_knobs(*change("conv2d", "tap_rows", 0)).tap_rows == 0
