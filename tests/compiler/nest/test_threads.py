"""Whether iterations are independent: never said of those that are not."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.expression.expression import Axis, Constant, Expression, both, select
from microtron.compiler.nest.nest import (
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    Start,
    Statement,
    When,
    make_sequence,
)
from microtron.compiler.nest.threads import conflict

from ..expression.indices import AFFINE_INDICES, AXES, CONDITIONS, INDICES, values
from .nests import access, loop, region, threads

T, INNER, OUTER = AXES
A = Buffer("a", (64,), "int8")
B = Buffer("b", (64, 64), "int8")
ONE = Constant(1, "int8")


def dependent(loop_: Loop) -> bool:
    return conflict(loop_) is not None


def really_dependent(written: Expression, read: Expression, condition: Expression) -> bool:
    """Whether some iteration writes an element that another one writes or reads."""
    touched: dict[tuple[int, int], dict[int, set[str]]] = {}
    places = product(*(range(axis.extent) for axis in AXES))
    for (thread, _, outer), (target, source, holds) in zip(
            places, values(written, read, condition), strict=True):
        if holds:
            touched.setdefault((outer, target), {}).setdefault(thread, set()).add("write")
            touched.setdefault((outer, source), {}).setdefault(thread, set()).add("read")
    return any(len(by_thread) > 1 and any("write" in each for each in by_thread.values())
               for by_thread in touched.values())


def guarded(written: Expression, read: Expression, condition: Expression) -> Loop:
    return threads(T, Loop(INNER, When(condition, Assign(access(A, written), access(A, read)))))


SPREAD = st.builds(lambda index, factor: index + T * factor, AFFINE_INDICES | INDICES,
                   st.sampled_from([0, 1, 3, 40, 200]))


@given(SPREAD, SPREAD, st.just(T <= 4) | CONDITIONS)
def test_iterations_that_depend_on_each_other_are_always_found(written, read, condition):
    assert dependent(guarded(written, read, condition)) or (
        not really_dependent(written, read, condition))


@given(AFFINE_INDICES)
def test_affine_indices_far_enough_apart_are_independent(index):
    assert not dependent(threads(T, loop(INNER, Assign(access(A, index + T * 10000), ONE))))


t, i, j, outer = Axis("t", 2), Axis("i", 8), Axis("j", 4), Axis("o", 3)


@pytest.mark.parametrize("body", [
    loop(i, Assign(access(B, i, i + t), ONE)),          # rows are the same, places are not
    Assign(access(A, t), ONE),
    loop(i, Assign(access(A, t * 8 + i), ONE)),
    loop(i, Assign(access(A, i * 2 + t), ONE)),                         # every other element
    loop(i, Assign(access(A, outer * 16 + t * 8 + i), ONE)),
    loop(i, Assign(access(A, outer * 16 + t * 8 + i // 2), ONE)),       # not affine
    loop(i, Assign(access(A, outer // 2 * 16 + t * 8 + i), ONE)),       # the same in both
    Assign(access(B, t // 2, t % 2), ONE),                              # fused
    loop(i, Assign(access(B, i, t), ONE)),
    loop(i, Assign(access(A, t * 8 + i), access(A, t * 8 + 7 - i))),    # its own elements
    When(t.equals(0), Assign(access(A, 0), ONE)),
    When(t.equals(1), Assign(access(A, 0), access(A, 3))),
    loop(i, When(i < 3, Assign(access(A, t * 3 + i), ONE))),
    loop(i, When(both(t * 4 + i >= 4 * t, t * 4 + i < 4 * t + 4),
                 Assign(access(A, t * 4 + i), ONE))),
    Assign(access(A, t), access(A, t + 2)),
    Assign(access(A, t), select(t < 1, access(A, 0), ONE)),
    Copy(region(A, (t * 4, 4)), region(A, (t * 4 + 16, 8))),
    Copy(region(A, (t * 4, 4)), region(A, (8, 4))),
    Invoke("f", (region(B, (t, 1), (0, 4)), region(B, (t + 2, 1), (0, 4)))),
    Start("f", region(A, (t * 4, 4)), 0),
    Allocate(A, make_sequence(Assign(access(A, 0), ONE), Assign(access(B, t, 0), access(A, 0)))),
])
def test_independent_iterations_are_recognized(body):
    assert not dependent(threads(t, body))


@pytest.mark.parametrize("body", [
    Assign(access(A, 0), ONE),
    Assign(access(A, t // 2), ONE),
    loop(i, Assign(access(A, t * 7 + i), ONE)),                         # one element
    loop(i, Assign(access(A, i * 2 + t * 2), ONE)),
    Assign(access(A, t), access(A, 0)),
    Assign(access(A, t), access(A, 1 - t)),
    Assign(access(A, t), select(access(A, 1) < 0, ONE, ONE)),
    When(access(A, 0) < 0, Assign(access(A, t), ONE)),
    When(t < 2, Assign(access(A, 0), ONE)),
    loop(i, When(i < 3, Assign(access(A, t * 2 + i), ONE))),
    Copy(region(A, (t * 4, 5)), region(B, (0, 1), (0, 5))),
    Copy(region(A, (t * 4, 4)), region(A, (t * 4 + 1, 4))),
    Invoke("f", (region(A, (0, 4)), region(B, (t, 1), (0, 4)))),
    Start("f", region(A, (t * 4, 5)), 0),
    Invoke("f", (region(A, (t * 4, 4)), region(A, (0, 1)))),
    Assign(access(A, select(access(B, 0, 0) < 0, 0, 1) + t), ONE),      # depends on data
    make_sequence(Assign(access(A, t), ONE), Assign(access(A, t + 1), ONE)),
])
def test_dependent_iterations_are_recognized(body):
    assert dependent(threads(t, body))


def test_conditions_around_the_loop_count():
    body = threads(t, loop(i, Assign(access(A, t * 4 + i), ONE)))
    assert conflict(body) is not None
    assert conflict(body, (i < 4,)) is None


def test_one_iteration_depends_on_nothing():
    alone = Axis("t", 1)
    body: Statement = Assign(access(A, 0), access(A, 0))
    assert not dependent(threads(alone, body))


def test_the_conflict_names_both_sides():
    found = conflict(threads(t, Assign(access(A, t * 4), access(A, 4 - t * 3))))
    assert not found.first.touch.writes
    assert found.second.touch.writes
    assert (found.first_iteration, found.second_iteration) == (0, 1)
