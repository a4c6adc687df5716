"""Conditions cut loops of the hardware short, or are decided when a program is emitted."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.conditions import clip_loops, decision, limits_of
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import Axis, Binary, both, either

outer, i, j = Axis("outer", 5), Axis("i", 4), Axis("j", 3)
SMALL = st.integers(-9, 9)
OPERATORS = st.sampled_from(("<", "<="))


@st.composite
def limits(draw):
    """A condition on one loop inside, wherever the loop outside stands."""
    axis, step = draw(st.sampled_from((i, j))), draw(st.integers(-5, 5))
    left = axis * step + outer * draw(SMALL) + draw(SMALL)
    return Binary(draw(OPERATORS), left, outer * draw(SMALL) + draw(SMALL))


@given(st.lists(limits(), max_size=3), st.integers(0, outer.extent - 1))
def test_loops_are_left_with_the_iterations_in_which_all_conditions_hold(conditions, far):
    def runs(near, other):
        return all(decision(each)({outer: far, i: near, j: other}) for each in conditions)

    left = clip_loops((i, j), limits_of(conditions, (i, j)), {outer: far})
    places = list(product(range(i.extent), range(j.extent)))
    inside = [] if left is None else list(product(*(
        range(start, start + extent) for start, extent in zip(*left, strict=True))))
    assert [place for place in places if runs(*place)] == inside


@given(SMALL, SMALL, SMALL, st.integers(0, outer.extent - 1))
def test_a_condition_on_known_loops_is_decided(factor, left, right, far):
    for operator in ("<", "<="):
        for index, value in ((outer * factor + left, far * factor + left),
                             (outer // 2 * factor + left, far // 2 * factor + left)):
            compared = value < right if operator == "<" else value <= right
            assert decision(Binary(operator, index, right + i - i))({outer: far, i: 0}) == compared
            assert decision(both(outer <= 9, index < right))({outer: far}) == (value < right)


@pytest.mark.parametrize("condition", [outer.equals(1), outer.cast("bool"), i // 2 < 1,
                                       either(outer < 1, outer < 2)])
def test_what_cannot_be_decided_is_not_guessed(condition):
    with pytest.raises(CompileError, match="holds is not known when it is emitted"):
        decision(condition)({outer: 1})


def test_a_loop_without_a_value_is_named():
    with pytest.raises(CompileError, match="depends on i, whose value is not known here"):
        decision(outer + i < 2)({outer: 1})


@pytest.mark.parametrize("condition", [i.equals(1), i // 2 < 1, either(i < 1, i < 2),
                                       i.cast("bool")])
def test_a_condition_that_hardware_loops_cannot_have_is_refused(condition):
    with pytest.raises(CompileError, match="must compare sums of axes with < or <="):
        limits_of([condition], (i,))


@pytest.mark.parametrize("condition", [i + j < 3, i >= j, i < j])
def test_a_condition_must_cut_one_loop(condition):
    with pytest.raises(CompileError, match="must cut one of them"):
        limits_of([condition], (i, j))
