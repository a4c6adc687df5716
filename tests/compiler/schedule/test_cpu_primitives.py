"""Primitives for the CPU: what they make of a nest, and what they refuse."""

import re

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.listing import listing
from microtron.compiler.nest.nest import Scope
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule


def product(dtype="float32"):
    x, w = placeholder("x", (6, 5), dtype), placeholder("w", (5, 8), dtype)
    k = reduce_axis("k", 5)
    return x, w, compute("y", (6, 8), lambda i, j: total(x[i, k] * w[k, j], k))


def scheduled():
    _, _, y = product()
    schedule = Schedule(y)
    local = schedule.cache_write(y, Scope.LOCAL)
    stage = schedule[schedule.replacement_of(y)]
    i, j = stage.leaves
    _, inner = stage.split(j, 4)
    stage.parallel(i)
    stage.vectorize(inner)
    schedule[local].compute_at(stage, stage.leaves[1])
    _, lanes, k = schedule[local].leaves
    schedule[local].reorder(k, lanes)
    schedule[local].vectorize(lanes)
    schedule[local].multiply_add()
    return schedule


def test_they_reach_the_nest():
    nest = lower(scheduled())
    verify_nest(nest)
    assert listing(nest) == """\
x: float32[6, 5] in dram, given
w: float32[5, 8] in dram, given
y: float32[6, 8] in dram, result
parallel axes0 < 6:
    for axes1.outer < 2:
        allocate y.local: float32[1, 4] in local
        for i < 1:
            vector j < 4:
                y.local[i, j] = 0
            for k < 5:
                vector j_2 < 4:
                    y.local[i, j_2] = fma(x[axes0 + i, k], w[k, axes1.outer * 4 + j_2], y.local[i, \
j_2])
        vector axes1.inner < 4:
            y[axes0, axes1.outer * 4 + axes1.inner] = y.local[0, axes1.inner]
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_any_order_of_independent_iterations_gives_the_same(seed):
    nest = lower(scheduled())
    rng = np.random.default_rng(0)
    given = {buffer: rng.integers(-9, 9, buffer.shape).astype("float32") for buffer in nest.inputs}
    found, = interpret(nest, given, seed=seed).values()
    np.testing.assert_array_equal(found, given[nest.inputs[0]] @ given[nest.inputs[1]])


def test_a_multiply_add_rounds_once():
    x, w = (placeholder(name, (1,), "float32") for name in "xw")
    k = reduce_axis("k", 1)
    y = compute("y", (1,), lambda i: total(x[k] * w[k], k))
    schedule = Schedule(y)
    schedule[y].multiply_add()
    assert "fma(x[k], w[k], y[i])" in listing(lower(schedule))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda stage, i, j, k: stage.parallel(j), "stage y: j is not its outermost loop, i, which is"),
    (lambda stage, i, j, k: stage.vectorize(k), "stage y: k is reduced over: its iterations add to "
     "the same sums and cannot be lanes of a vector"),
    (lambda stage, i, j, k: (stage.reorder(k, i, j), stage.parallel(k)), "cannot be parallel"),
    (lambda stage, i, j, k: stage.vectorize(stage.fuse(stage.fuse(i, j), k)), "cannot be fused"),
    (lambda stage, i, j, k: stage.vectorize(stage.fuse(i, j)), "i.j has 4096 iterations, more than "
     "the 64 lanes of a vector; split it first"),
])
def test_what_makes_no_sense_is_refused(wrong, message):
    x = placeholder("x", (64, 64), "float32")
    k = reduce_axis("k", 64)
    y = compute("y", (64, 64), lambda i, j: total(x[i, k], k))
    stage = Schedule(y)[y]
    with pytest.raises(CompileError, match=re.escape(message)):
        wrong(stage, *stage.leaves)


def test_only_sums_of_products_of_floats_are_multiplied_and_added():
    x, _, integers = product("int32")
    for y in (integers, compute("z", (6, 5), lambda i, j: x[i, j])):
        with pytest.raises(CompileError, match="is not a sum of products of floats"):
            Schedule(y)[y].multiply_add()


def overlapping(extent=11, factor=4):
    x = placeholder("x", (2, extent), "int32")
    y = compute("y", (2, extent), lambda i, j: x[i, j] * 3)
    schedule = Schedule(y)
    stage = schedule[y]
    _, inner = stage.split_overlapping(stage.leaves[1], factor)
    stage.vectorize(inner)
    return schedule


@pytest.mark.parametrize("extent", range(4, 13))
def test_parts_that_overlap_have_no_condition_and_cover_everything(extent):
    nest = lower(overlapping(extent))
    verify_nest(nest)
    assert "if" not in listing(nest)
    x = np.arange(2 * extent, dtype=np.int32).reshape(2, extent)
    found, = interpret(nest, {buffer: x for buffer in nest.inputs}).values()
    np.testing.assert_array_equal(found, x * 3)


def test_parts_that_overlap_are_refused_where_elements_would_be_summed_twice():
    _, _, y = product()
    schedule = Schedule(y)
    with pytest.raises(CompileError, match="overlapping parts of 3: it takes as many, and no"):
        schedule[y].split_overlapping(schedule[y].leaves[1], 3)
    with pytest.raises(CompileError, match="j of 11 cannot be split into overlapping parts of 12"):
        overlapping(factor=12)
