"""Loop nests on this processor do what they do in the interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.processor import TARGETS
from microtron.compiler.cpu.default_schedule import default_schedule
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import (
    Axis,
    Constant,
    both,
    largest,
    maximum,
    minimum,
    select,
    total,
)
from microtron.compiler.expression.functions import check_index
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Scope,
    When,
    make_sequence,
)
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

from .machine import run


def numbers(buffer, seed=0):
    rng = np.random.default_rng(seed)
    if buffer.dtype.startswith("float"):
        return rng.normal(size=buffer.shape).astype(buffer.dtype)
    return rng.integers(-100, 100, buffer.shape).astype(buffer.dtype)


def check(nest, inputs=None):
    """Compare a nest with the interpreter, whole and in pieces."""
    verify_nest(nest)
    inputs = inputs or {buffer: numbers(buffer, place) for place, buffer in enumerate(nest.inputs)}
    expected = interpret(nest, inputs)
    parallel = isinstance(nest.body, Loop) and nest.body.kind == LoopKind.PARALLEL
    cut = nest.body.axis.extent // 2 if parallel else 1
    for pieces in [((0, None),), *([((cut, None), (0, cut), (cut, cut))] if parallel else [])]:
        status, found = run(nest, inputs, pieces)
        assert status == 0
        for buffer in nest.outputs:
            np.testing.assert_array_equal(found[buffer], expected[buffer])


def window(dtype="int32", sides=(5, 9), taps=3):
    """A sum over a padded window: an index is outside where a select does not choose it."""
    x = placeholder("x", sides, dtype)
    k, m = reduce_axis("k", taps), reduce_axis("m", taps)

    def pad(i, j):
        return select(both(i >= 0, i < sides[0], j >= 0, j < sides[1]), x[i, j], 0)
    return compute("y", sides, lambda i, j: total(pad(i + k - 1, j + m - 1), k, m))


@pytest.mark.parametrize("dtype", ["int32", "float32", "int8", "uint16", "float64"])
@pytest.mark.parametrize("split", [None, 1, 2, 4, 9, 16])
def test_windows_with_borders(dtype, split):
    y = window(dtype)
    schedule = Schedule(y)
    stage = schedule[y]
    i, j, k, m = stage.leaves
    stage.parallel(i)
    if split:
        outer, inner = stage.split(j, split)
        stage.reorder(outer, k, m, inner)
        stage.vectorize(inner)
    stage.unroll(m)
    check(lower(schedule))


@given(st.data())
@settings(max_examples=30)
def test_random_schedules_of_a_product(data):
    rows, columns, depth = (data.draw(st.integers(1, 13)) for _ in range(3))
    dtype = data.draw(st.sampled_from(["float32", "int32", "int16"]))
    x, w = placeholder("x", (rows, depth), dtype), placeholder("w", (depth, columns), dtype)
    k = reduce_axis("k", depth)
    y = compute("y", (rows, columns), lambda i, j: total(x[i, k] * w[k, j], k))
    schedule = Schedule(y)
    local = schedule.cache_write(y, Scope.LOCAL) if data.draw(st.booleans()) else None
    stage = schedule[schedule.replacement_of(y)]
    i, j = stage.leaves[:2]
    outer_i, inner_i = stage.split(i, data.draw(st.integers(1, 5)))
    outer_j, inner_j = stage.split(j, data.draw(st.integers(1, 9)))
    stage.reorder(outer_i, outer_j, inner_i, inner_j)
    stage.parallel(outer_i)
    stage.vectorize(inner_j)
    if local is not None:
        inside = schedule[local]
        inside.compute_at(stage, outer_j)
        row, column, depth_axis = inside.leaves
        inside.reorder(depth_axis, row, column)
        inside.unroll(row)
        inside.vectorize(column)
        if dtype == "float32" and data.draw(st.booleans()):
            inside.multiply_add()
    else:
        stage.reorder(stage.leaves[-1], inner_j)
    check(lower(schedule))


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTORIZED, LoopKind.UNROLLED])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_strides(kind, step):
    """Vectors gather and scatter what does not lie side by side."""
    i = Axis("i", 8)
    x, y = Buffer("x", (20,), "int32"), Buffer("y", (20,), "int32")
    far = i * step + (10 if step < 0 else 0)
    fill = Loop(Axis("j", 20), Assign(Access(y, (Axis("j", 20),)), Constant(0, "int32")))
    j = Axis("j", 20)
    fill = Loop(j, Assign(Access(y, (j,)), Constant(0, "int32")))
    for target, source in ((far, i), (i, far), (far, far)):
        check(Nest((x,), (y,), make_sequence(fill, Loop(
            i, Assign(Access(y, (target,)), Access(x, (source,)) + 1), kind))))


def test_lanes_that_a_condition_leaves_out():
    i, j = Axis("i", 4), Axis("j", 8)
    x, y = Buffer("x", (4, 8), "int32"), Buffer("y", (4, 8), "int32")
    k = Axis("k", 32)
    fill = Loop(k, Assign(Access(y, (k // 8, k % 8)), Constant(7, "int32")))
    here = Assign(Access(y, (i, j)), Access(x, (i, j)) * 3)
    for condition in (i * 8 + j < 21, j * 2 <= i * 3, (j % 3).equals(1), i < 3,
                      Access(x, (i, j)) < 0):
        inner = Loop(j, When(condition, here), LoopKind.VECTORIZED)
        check(Nest((x,), (y,), make_sequence(fill, Loop(i, inner))))


def test_a_buffer_inside_a_loop_is_each_iterations_own():
    i, j, k = Axis("i", 6), Axis("j", 5), Axis("k", 5)
    x, y = Buffer("x", (6, 5), "int16"), Buffer("y", (6, 5), "int16")
    row = Buffer("row", (5,), "int16", Scope.LOCAL)
    body = Allocate(row, make_sequence(
        Loop(j, Assign(Access(row, (j,)), Access(x, (i, minimum(j + 1, 4))))),
        Loop(k, Assign(Access(y, (i, k)), Access(row, (4 - k,))))))
    check(Nest((x,), (y,), Loop(i, body, LoopKind.PARALLEL)))


def test_fused_loops_read_in_order():
    x = placeholder("x", (3, 4, 5), "float32")
    y = compute("y", (3, 4, 5), lambda i, j, k: maximum(x[i, j, k], 0.0))
    schedule = Schedule(y)
    stage = schedule[y]
    i, j, k = stage.leaves
    outer, inner = stage.split(stage.fuse(stage.fuse(i, j), k), 16)
    stage.parallel(outer)
    stage.vectorize(inner)
    check(lower(schedule))


def test_maxima_of_rows():
    x = placeholder("x", (3, 7), "float32")
    k = reduce_axis("k", 7)
    check(lower(Schedule(compute("y", (3,), lambda i: largest(x[i, k], k)))))


@pytest.mark.parametrize("vector", [False, True])
def test_a_wrong_index_from_data_is_reported_and_reads_nothing_outside(vector):
    x, places = placeholder("x", (6,), "float32"), placeholder("p", (4,), "int64")
    y = compute("y", (4,), lambda i: x[check_index(places[i].cast("index"), 6)])
    schedule = Schedule(y)
    if vector:
        schedule[y].vectorize(y.axes[0])
    nest = lower(schedule)
    inputs = {buffer: numbers(buffer) for buffer in nest.inputs}
    p = next(buffer for buffer in nest.inputs if buffer.name == "p")
    for wrong in (None, 6, -1, 1 << 62, -(1 << 63)):
        inputs[p] = np.array([0, 5, 2, 3], np.int64)
        if wrong is not None:
            inputs[p][2] = wrong
        status, found = run(nest, inputs)
        assert status == (wrong is not None)
        right = [0, 1, 3]
        gathered = inputs[next(each for each in nest.inputs if each is not p)][inputs[p][right]]
        assert found[nest.outputs[0]][right].tolist() == gathered.tolist()


def test_what_only_the_accelerator_has_is_refused():
    x = Buffer("x", (4,), "int8")
    with pytest.raises(CompileError, match="a invoke cannot be compiled for the CPU"):
        run(Nest((), (x,), Invoke("gemm", ())), {})


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_every_other_element_is_read_up_to_the_last(dtype, lanes):
    x = placeholder("x", (2 * 3 * lanes - 1,), dtype)           # the last one is read, and no more
    y = compute("y", (3 * lanes,), lambda i: x[i * 2])
    schedule = Schedule(y)
    _, inner = schedule[y].split(schedule[y].leaves[0], lanes)
    schedule[y].vectorize(inner)
    nest = lower(schedule)
    values = np.arange(x.shape[0]).astype(dtype)
    _, found = run(nest, {nest.inputs[0]: values})
    np.testing.assert_array_equal(found[nest.outputs[0]], values[::2])


@pytest.mark.parametrize("width", [64, 65, 100, 512])
def test_sums_in_registers_of_rows_wider_than_a_vector_may_be(width):
    x, weights = placeholder("x", (3, 1, 5), "float32"), placeholder("w", (5, width), "float32")
    bias, t = placeholder("b", (width,), "float32"), reduce_axis("t", 5)
    sums = compute("sums", (3, 1, width), lambda i, j, k: total(x[i, j, t] * weights[t, k], t))
    found = compute("y", sums.shape, lambda i, j, k: sums[i, j, k] + bias[k])
    schedule = default_schedule(found, replace(TARGETS["x86-64"], vector_bytes=64))
    assert schedule[sums].attach is not None
    check(lower(schedule))
