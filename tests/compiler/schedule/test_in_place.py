"""Tensors that are computed in the buffers of others: the same result, one buffer less."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import Allocate, Scope, statements_of
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

DATA = np.arange(12, dtype=np.int32).reshape(3, 4)


def chain():
    """x → twice → more → y, all of a row inside a loop of y."""
    x = placeholder("x", (3, 4), "int32")
    twice = compute("twice", (3, 4), lambda i, j: x[i, j] * 2)
    more = compute("more", (3, 4), lambda i, j: twice[i, j] + 1)
    y = compute("y", (3, 4), lambda i, j: more[i, j] * more[i, j])
    plan = Schedule(y)
    for each in (twice, more):
        plan[each].scope = Scope.LOCAL
        plan[each].compute_at(plan[y], plan[y].leaves[0])
    return plan, x, twice, more, y


def test_what_is_computed_in_place_needs_no_buffer_of_its_own():
    plan, _, twice, more, _ = chain()
    apart = lower(chain()[0])
    plan[more].compute_in_place(twice)
    nest = lower(plan)
    verify_nest(nest)
    buffers = [[each.buffer.name for each in statements_of(one.body) if isinstance(each, Allocate)]
               for one in (apart, nest)]
    assert buffers == [["twice", "more"], ["more"]]
    result = interpret(nest, {nest.inputs[0]: DATA})[nest.outputs[0]]
    assert (result == (2 * DATA + 1) ** 2).all()


def test_what_somebody_else_reads_stays():
    x = placeholder("x", (4,), "int32")
    twice = compute("twice", (4,), lambda i: x[i] * 2)
    more = compute("more", (4,), lambda i: twice[i] + 1)
    y = compute("y", (4,), lambda i: more[i] + twice[i])
    plan = Schedule(y)
    plan[more].compute_in_place(twice)
    with pytest.raises(CompileError, match="y reads it too"):
        lower(plan)


def test_other_loops_scopes_and_elements_are_refused():
    plan, _, twice, more, _ = chain()
    plan[more].scope = Scope.ACC
    plan[more].compute_in_place(twice)
    with pytest.raises(CompileError, match="in the same scope"):
        lower(plan)
    x = placeholder("x", (4, 4), "int32")
    twice = compute("twice", (4, 4), lambda i, j: x[i, j] * 2)
    turned = compute("turned", (4, 4), lambda i, j: twice[j, i])
    plan = Schedule(turned)
    plan[turned].compute_in_place(twice)
    with pytest.raises(CompileError, match="not read element by element"):
        lower(plan)
    k = reduce_axis("k", 4)
    sums = compute("sums", (4, 4), lambda i, j: total(twice[i, j] + k.cast("int32"), k))
    plan = Schedule(sums)
    plan[sums].compute_in_place(twice)
    with pytest.raises(CompileError, match="not read element by element"):
        lower(plan)
