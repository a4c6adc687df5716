"""Boxes of DRAM: tidied up they have the same cells, and two meet where their cells do."""

from itertools import product

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from microtron.isa.verification.order.boxes import find_common_run, normalize_box

NO_LIMIT = 1 << 62
counts = st.integers(1, 7)
steps = st.integers(-40, 40)
boxes = st.tuples(st.integers(0, 60), st.tuples(counts, counts, counts), st.tuples(steps, steps))


def tidy(base, loops, stride):
    """One box as `find_common_run` wants it. Loops that do not move are no loops."""
    loops = [1 if step == 0 else count for count, step in zip(loops, (*stride, 1), strict=True)]
    count, step = np.array(loops), np.array((*stride, 1))
    return base + normalize_box(count, step), count, step


def cells(base, loops, stride):
    return {base + outer * stride[0] + inner * stride[1] + each
            for outer, inner, each in product(*map(range, loops))}


def rows(loops):
    return int(loops[0] * loops[1])


@settings(max_examples=300)
@given(box=boxes)
@example(box=(0, (3, 4, 2), (8, 2)))
@example(box=(0, (3, 2, 2), (4, 8)))
@example(box=(7, (5, 3, 1), (-2, -10)))
def test_a_tidy_box_has_the_same_cells_and_its_rows_lie_apart(box):
    base, loops, stride = tidy(*box)
    assert cells(base, loops, stride) == cells(*box)
    assert (loops > 0).all()
    assert (stride > 0).all()
    if loops[1] > 1:
        assert stride[1] > loops[2], "rows of a plane do not touch"
    else:
        assert loops[0] == 1, "one loop is the inner one"
    assert rows(loops) <= rows(box[1])


@pytest.mark.parametrize(("box", "expected"), [
    ((64, (1, 1, 16), (0, 0)), (64, 1, 16)),
    ((0, (4, 8, 16), (128, 16)), (0, 1, 512)),                  # rows and planes in one piece
    ((0, (8, 4, 16), (16, 128)), (0, 1, 512)),                  # ... and the other way round
    ((96, (4, 1, 16), (-32, 5)), (0, 4, 16)),                   # backwards
    ((0, (65535, 2048, 16), (65536, 32)), (0, 65535 * 2048, 16)),       # planes go on
    ((0, (3, 65535, 16), (0, 16)), (0, 1, 65535 * 16)),         # planes on top of one another
])
def test_a_box_that_can_be_one_loop_is_one_loop(box, expected):
    base, loops, _ = tidy(*box)
    assert (base, loops[1], loops[2]) == expected
    assert loops[0] == 1


@settings(max_examples=250)
@given(one=boxes, two=boxes)
def test_two_boxes_meet_in_cells_that_both_have(one, two):
    both = cells(*one) & cells(*two)
    for first, second in ((one, two), (two, one)):
        low, high = find_common_run(*tidy(*first), *tidy(*second), np.zeros(1, np.int64), NO_LIMIT)
        event("meet" if both else "apart")
        assert (low <= high) == bool(both)
        assert set(range(low, high + 1)) <= both


wide_steps = st.integers(300, 3000)
wide = st.tuples(st.integers(0, 3000), st.tuples(st.integers(1, 5), st.integers(1, 300),
                                                 st.integers(1, 3)),
                 st.tuples(st.integers(1, 100_000), wide_steps))


@settings(max_examples=200)
@given(one=wide, two=wide)
def test_boxes_of_many_rows_far_apart_meet_where_their_cells_do(one, two):
    both = cells(*one) & cells(*two)
    low, high = find_common_run(*tidy(*one), *tidy(*two), np.zeros(1, np.int64), NO_LIMIT)
    event("meet" if both else "apart")
    assert (low <= high) == bool(both)
    assert set(range(low, high + 1)) <= both


def test_a_billion_rows_are_compared_at_once():
    """Rows at 3 and 5 of their grids: 7n + 3 = 11m + 5 has its first solution at 38."""
    one = tidy(3, (1, 65535, 1), (0, 7))
    work = np.zeros(1, np.int64)
    assert find_common_run(*one, *tidy(5, (1, 65535, 1), (0, 11)), work, NO_LIMIT) == (38, 38)
    even, odd = (tidy(start, (65535, 30000, 1), (60000, 2)) for start in (0, 1))
    assert find_common_run(*even, *odd, work, NO_LIMIT) == (0, -1)
    assert find_common_run(*even, *tidy(3, (65535, 30000, 2), (60000, 3)), work, NO_LIMIT) == (4, 4)
    assert work[0] < 20


def test_comparing_stops_at_the_limit():
    one, two = (tidy(start, (1000, 1000, 1), (2002, 2000)) for start in (0, 1))
    work = np.zeros(1, np.int64)
    assert find_common_run(*one, *two, work, 5000) == (0, -1)
    assert 5000 < work[0] <= 6001
