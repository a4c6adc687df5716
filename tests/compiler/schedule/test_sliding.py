"""Stages that slide compute each row once, and give what they would give otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import both, select, total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.listing import listing
from microtron.compiler.nest.nest import Allocate, statements_of
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule


def windows(size, taps, stride, pad):
    """A sum over a window of what is computed from an input, in a border."""
    x = placeholder("x", (size,), "int32")
    padded = compute("padded", (size + 2 * pad,), lambda i: select(
        both(pad <= i, i < pad + size), x[i - pad] * 3, 7))
    k = reduce_axis("k", taps)
    outputs = (size + 2 * pad - taps) // stride + 1
    return x, padded, compute("y", (outputs,), lambda i: total(padded[i * stride + k], k))


def sliding(padded, y, rows, late):
    plan = Schedule(y)
    far, _ = plan[y].split(y.axes[0], rows, late)
    plan[padded].compute_at(plan[y], far)
    plan[padded].slide(padded.axes[0])
    return plan


@given(size=st.integers(4, 12), taps=st.integers(1, 4), stride=st.integers(1, 3),
       pad=st.integers(0, 2), rows=st.integers(1, 4), more=st.integers(0, 2))
def test_what_slides_gives_the_same(size, taps, stride, pad, rows, more):
    x, padded, y = windows(size, taps, stride, pad)
    late = -(-max(0, taps - stride) // stride) + more
    nest = lower(sliding(padded, y, rows, late))
    verify_nest(nest)
    values = np.arange(size, dtype=np.int32) ** 2
    found, = interpret(nest, {nest.inputs[0]: values}).values()
    np.testing.assert_array_equal(found, evaluate(y, {x: values}))


def test_only_what_is_new_is_computed():
    _, padded, y = windows(12, 3, 1, 1)
    nest = lower(sliding(padded, y, 4, 2))
    slide = next(each.slide for each in statements_of(nest.body) if isinstance(each, Allocate))
    assert (slide.step, slide.first) == (4, 2)
    assert "sliding by 4" in listing(nest)


def test_the_first_iteration_needs_nothing_from_before():
    _, padded, y = windows(12, 3, 1, 1)
    with pytest.raises(CompileError, match="split that loop late"):
        lower(sliding(padded, y, 4, 1))


def test_it_is_computed_in_a_loop_of_its_reader():
    _, padded, y = windows(12, 3, 1, 1)
    with pytest.raises(CompileError, match="use compute_at first"):
        Schedule(y)[padded].slide(padded.axes[0])


def test_a_border_is_filled_around_a_select():
    _, padded, y = windows(12, 3, 1, 1)
    plan = Schedule(y)
    with pytest.raises(CompileError, match="has no border"):
        plan[y].fill_border("fill")
    plan[padded].fill_border("fill")
