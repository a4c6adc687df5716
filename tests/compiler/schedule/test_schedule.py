"""Schedules never change what comes out, and refuse what would."""

import random

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import both, largest, select, total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import Loop, LoopKind, Scope, statements_of
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule


def convolution():
    """A padded convolution and something element-wise after it."""
    x, w = placeholder("x", (2, 5, 4), "int8"), placeholder("w", (2, 2, 3, 3), "int8")
    padded = compute("padded", (2, 7, 6), lambda c, y, v: select(
        both(y >= 1, y < 6, v >= 1, v < 5), x[c, y - 1, v - 1], 3))
    c, ky, kx = (reduce_axis(name, extent) for name, extent in (("c", 2), ("ky", 3), ("kx", 3)))
    sums = compute("sums", (2, 5, 4), lambda o, y, v: total(
        padded[c, y + ky, v + kx].cast("int32") * w[o, c, ky, kx].cast("int32"), c, ky, kx))
    twice = compute("twice", (2, 5, 4), lambda o, y, v: sums[o, y, v] * 2)
    return x, w, padded, sums, twice


def values_for(*tensors):
    rng = np.random.default_rng(0)
    return {tensor: rng.integers(-128, 128, tensor.shape).astype(tensor.dtype)
            for tensor in tensors}


def same(schedule, output, values):
    """Whether the nest computes what the expression means."""
    nest = lower(schedule)
    verify_nest(nest)
    inputs = {buffer: values[tensor] for buffer in nest.inputs for tensor in values
              if tensor.name == buffer.name}
    results = interpret(nest, inputs)
    return (results[nest.outputs[0]] == evaluate(output, values)).all()


@pytest.mark.parametrize("seed", range(40))
def test_any_splits_orders_fusions_and_places_give_the_same_result(seed):
    rng = random.Random(seed)
    x, w, padded, sums, twice = convolution()
    schedule = Schedule(twice)
    inside = schedule.cache_write(sums, Scope.ACC) if rng.random() < 0.5 else sums
    kernel = schedule.cache_read(w, Scope.WGT, inside) if rng.random() < 0.5 else None
    inside, sums, twice_now = (schedule.replacement_of(each) for each in (inside, sums, twice))
    if sums is not inside:
        schedule[sums].compute_inline()
    for stage in (schedule[twice_now], schedule[inside]):
        for axis in list(stage.leaves):
            if axis.extent > 1 and rng.random() < 0.4:
                stage.split(axis, rng.randint(1, axis.extent))
        stage.reorder(*rng.sample(stage.leaves, len(stage.leaves)))
        for place in range(len(stage.leaves) - 1):
            outer, inner = stage.leaves[place:place + 2] if place + 2 <= len(
                stage.leaves) else (None, None)
            if outer is not None and outer.reduces == inner.reduces and rng.random() < 0.15:
                stage.fuse(outer, inner)
    if rng.random() < 0.7:
        schedule[inside].compute_at(schedule[twice_now], rng.choice(schedule[twice_now].leaves))
    for stage in filter(None, (padded, kernel)):
        if rng.random() < 0.7:
            schedule[stage].compute_at(schedule[inside], rng.choice(schedule[inside].leaves))
    assert same(schedule, twice, values_for(x, w))


def test_a_split_that_does_not_divide_is_cut_short():
    x = placeholder("x", (10,), "int32")
    y = compute("y", (10,), lambda i: x[i] + 1)
    schedule = Schedule(y)
    outer, inner = schedule[y].split(schedule[y].leaves[0], 4)
    assert (outer.extent, inner.extent) == (3, 4)
    assert same(schedule, y, values_for(x))


def test_a_maximum_starts_from_the_smallest_value():
    x = placeholder("x", (4, 5), "int8")
    k = reduce_axis("k", 5)
    y = compute("y", (4,), lambda i: largest(x[i, k], k))
    schedule = Schedule(y)
    schedule[y].reorder(*reversed(schedule[y].leaves))
    assert same(schedule, y, {x: np.full((4, 5), -128, np.int8)})


def test_inlined_stages_leave_no_buffer():
    x, w, padded, _, twice = convolution()
    schedule = Schedule(twice)
    schedule[padded].compute_inline()
    assert "padded" not in {statement.buffer.name for statement in statements_of(
        lower(schedule).body) if hasattr(statement, "buffer")}
    assert same(schedule, twice, values_for(x, w))


def test_kinds_of_loops_reach_the_nest():
    x = placeholder("x", (4, 4), "int32")
    y = compute("y", (4, 4), lambda i, j: x[i, j] + 1)
    schedule = Schedule(y)
    i, j = schedule[y].leaves
    schedule[y].bind_threads(i)
    schedule[y].unroll(j)
    loops = [each.kind for each in statements_of(lower(schedule).body) if isinstance(each, Loop)]
    assert loops == [LoopKind.THREADS, LoopKind.UNROLLED]


def test_what_would_change_the_result_is_refused():
    x, _, padded, sums, twice = convolution()
    schedule = Schedule(twice)
    stage = schedule[sums]
    o, _, v, c, _, _ = stage.leaves
    with pytest.raises(CompileError, match="one of them is reduced over, the other is not"):
        stage.fuse(v, c)
    with pytest.raises(CompileError, match="cannot be threads"):
        stage.bind_threads(c)
    with pytest.raises(CompileError, match="is a reduction and cannot be inlined"):
        stage.compute_inline()
    with pytest.raises(CompileError, match="x has no stage: it is a placeholder"):
        schedule[x]
    with pytest.raises(CompileError, match="is not one of its loops"):
        schedule[padded].split(o, 2)


@pytest.mark.parametrize("number", [0, -1, 2.0, True, "2", None, 1 << 63])
def test_factors_and_counts_are_whole_numbers(number):
    _, _, _, _, twice = convolution()
    stage = Schedule(twice)[twice]
    for change, name in ((lambda: stage.split(stage.leaves[0], number), "axis o is split"),
                         (lambda: stage.keep(number), "copies that are kept"),
                         (lambda: stage.address_rows(number), "rows in a tile")):
        with pytest.raises(CompileError, match=rf"stage twice: .*{name} is {number!r}, but must be "
                                               rf"a whole number from 1 to {(1 << 63) - 1}"):
            change()


def test_factors_may_be_those_of_numpy():
    _, _, _, _, twice = convolution()
    stage = Schedule(twice)[twice]
    outer, inner = stage.split(stage.leaves[1], np.int64(4))
    assert [(each.extent, type(each.extent)) for each in (outer, inner)] == [(2, int), (4, int)]


def test_sums_of_floats_keep_their_order():
    x = placeholder("x", (3, 4, 5), "float32")
    j, k = reduce_axis("j", 4), reduce_axis("k", 5)
    y = compute("y", (3,), lambda i: total(x[i, j, k], j, k))
    schedule = Schedule(y)
    i, j, k = schedule[y].leaves
    schedule[y].reorder(j, i, k)            # fine: the order of the sum is the same
    with pytest.raises(CompileError, match="sums of float32 depend on their order"):
        schedule[y].reorder(k, i, j)


def test_computing_in_a_loop_that_does_not_read_it_is_refused():
    x = placeholder("x", (4,), "int32")
    a = compute("a", (4,), lambda i: x[i] + 1)
    b = compute("b", (4,), lambda i: a[i] + 1)
    c = compute("c", (4,), lambda i: b[i] + 1)
    schedule = Schedule(c)
    schedule[a].compute_at(schedule[c], schedule[c].leaves[0])
    with pytest.raises(CompileError, match="stage a is computed in loop i of stage c, but stage b "
                                           "reads it too; it must be a loop around all its read"):
        lower(schedule)


def test_dma_takes_copies_between_dram_and_a_scratchpad_only():
    _, w, padded, sums, twice = convolution()
    schedule = Schedule(twice)
    inside = schedule.cache_write(twice, Scope.OUT)
    kernel = schedule.cache_read(w, Scope.WGT, sums)
    outside, border = schedule[schedule.replacement_of(twice)], schedule[padded]
    with pytest.raises(CompileError, match="stage padded is a copy of x in dram, which is not "
                                           "a transfer; dma takes copies from dram to uop, inp"):
        border.dma(border.leaves[0])
    border.scope = Scope.INP
    for stage in (outside, border, schedule[kernel]):
        stage.dma(stage.leaves[0])
        assert stage.intrinsic == (stage.leaves[0], "dma")
    border.scope = Scope.OUT
    with pytest.raises(CompileError, match="stage padded is a copy of x in out, which is not a "):
        border.dma(border.leaves[0])
    for tensor in (schedule.replacement_of(sums), schedule.replacement_of(inside)):
        with pytest.raises(CompileError, match=rf"stage {tensor.name} computes .*, which is not "
                                               r"a copy; dma takes what cache_read and cache_"):
            schedule[tensor].dma(schedule[tensor].leaves[0])
    with pytest.raises(CompileError, match="is not one of its loops"):
        outside.dma(border.leaves[0])


def test_caches_come_before_marks():
    _, w, _, sums, twice = convolution()
    schedule = Schedule(twice)
    kernel = schedule.cache_read(w, Scope.WGT, sums)
    schedule[kernel].dma(schedule[kernel].leaves[0])
    with pytest.raises(CompileError, match=r"stage w\.wgt has been scheduled already; caches come"):
        schedule.cache_read(w, Scope.INP, kernel)


def test_a_mark_whose_loop_was_split_is_refused():
    _, w, _, sums, twice = convolution()
    schedule = Schedule(twice)
    stage = schedule[schedule.cache_read(w, Scope.WGT, sums)]
    first = stage.leaves[0]
    stage.dma(first)
    stage.split(first, 2)
    with pytest.raises(CompileError, match=rf"stage w\.wgt: {first} was to be the first loop of "
                                           rf"dma, but was split or fused afterwards; mark one of"):
        lower(schedule)


def test_schedules_of_one_expression_share_copies_of_its_tensors_but_no_loops():
    x = placeholder("x", (8,), "int8")
    y = compute("y", (8,), lambda i: x[i])
    z = compute("z", (8,), lambda i: x[i])
    one, other = Schedule(y), Schedule(y)
    copies = [plan.cache_read(x, Scope.INP, y) for plan in (one, other)]
    assert copies[0] is copies[1]
    one[copies[0]].split(copies[0].axes[0], 2)
    assert len(other[copies[0]].leaves) == 1
    both = Schedule(y, z)
    first, second = (both.cache_read(x, Scope.INP, each) for each in (y, z))
    assert first is not second
    assert first.axes[0] is not second.axes[0]
