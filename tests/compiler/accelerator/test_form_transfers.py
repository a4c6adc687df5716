"""Loops that only copy become transfers; others stay loops."""

import numpy as np
import pytest

from microtron.compiler.accelerator.selection.form_transfers import form_transfers
from microtron.compiler.accelerator.selection.tensorize import tensorize
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import Axis, both, select
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.nest.listing import listing
from microtron.compiler.nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Loop,
    Nest,
    Scope,
    When,
    statements_of,
)
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

X = placeholder("x", (6, 6), "int8")


def formed(function, shape=(6, 6), *, split=None):
    """The nest of a copy into the activation scratchpad and out again, and what it should give."""
    inside = compute("inside", shape, function)
    y = compute("y", shape, lambda i, j: inside[i, j])
    schedule = Schedule(y)
    schedule[inside].scope = Scope.INP
    if split:
        outer, _ = schedule[y].split(schedule[y].leaves[0], split)
        schedule[inside].compute_at(schedule[y], outer)
    return form_transfers(lower(schedule)), y


def copies(nest):
    return [each for each in statements_of(nest.body) if isinstance(each, Copy)]


def is_right(nest, y):
    values = np.random.default_rng(0).integers(-128, 128, X.shape, dtype=np.int8)
    results = interpret(nest, {nest.inputs[0]: values})
    return (results[nest.outputs[0]] == evaluate(y, {X: values})).all()


@pytest.mark.parametrize("split", [None, 2, 4])
def test_a_copy_is_one_transfer_each_way(split):
    nest, y = formed(lambda i, j: X[i, j], split=split)
    assert len(copies(nest)) == 2
    assert is_right(nest, y)


@pytest.mark.parametrize("split", [None, 3, 5])
def test_padding_is_recognized_with_its_value(split):
    nest, y = formed(lambda i, j: select(both(i >= 1, i < 7, j >= 2, j < 8), X[i - 1, j - 2], 7),
                     (8, 9), split=split)
    load, _ = copies(nest)
    assert load.padding == 7
    assert is_right(nest, y)


@pytest.mark.parametrize("function", [
    lambda i, j: X[j, i],
    lambda i, j: X[i, j] + 1,
    lambda i, j: X[i, 5 - j],
    lambda i, j: X[i // 2, j],
    lambda i, j: select(i < 3, X[i, j], 0),
], ids=["transposed", "changed", "reversed", "repeated", "half of it"])
def test_what_is_more_than_a_copy_stays_loops(function):
    nest, y = formed(function)
    assert len(copies(nest)) == 1           # only the way out
    assert is_right(nest, y)


def test_a_copy_that_depends_on_data_stays_loops():
    flags, x = Buffer("flags", (4,), "bool"), Buffer("x", (4,), "int8")
    inside, i = Buffer("inside", (4,), "int8", Scope.INP), Axis("i", 4)
    load = Loop(i, When(Access(flags, (i,)), Assign(Access(inside, (i,)), Access(x, (i,)))))
    nest = form_transfers(Nest((flags, x), (), Allocate(inside, load)))
    assert copies(nest) == []


@pytest.mark.parametrize(("extent", "condition", "one"), [
    (4, lambda i: i < 4, True), (6, lambda i: i < 4, True),     # of what would lie outside
    (6, lambda i: i < 5, True), (6, lambda i: i >= 0, True),
    (4, lambda i: i < 3, False), (4, lambda i: i >= 1, False), (6, lambda i: i < 3, False),
    (4, lambda i: 2 * i < 6, False), (4, lambda i: i <= 2, False),
])
def test_a_copy_under_a_condition_is_one_if_all_that_is_left_out_lies_outside(
        extent, condition, one):
    x, i = Buffer("x", (4,), "int8"), Axis("i", extent)
    inside = Buffer("inside", (8,), "int8", Scope.INP)
    load = Loop(i, When(condition(i), Assign(Access(inside, (i,)), Access(x, (i,)))))
    assert len(copies(form_transfers(Nest((x,), (), Allocate(inside, load))))) == one


def cached(function=lambda i, j: X[i, j], *, back=Scope.OUT, split=None):
    """A schedule of a copy into a scratchpad and of its double, with the copy's stage and the
    stage that stores it. With a split, all is computed inside the outer loop of the last."""
    inside = compute("inside", (6, 6), function)
    y = compute("y", (6, 6), lambda i, j: inside[i, j] + inside[i, j])
    schedule = Schedule(y)
    double = schedule.cache_write(y, back)
    schedule[inside].scope = Scope.INP
    store = schedule[schedule.replacement_of(y)]
    if split:
        outer, _ = store.split(store.leaves[0], split)
        for tensor in (inside, double):
            schedule[tensor].compute_at(store, outer)
    return schedule, schedule[inside], store


def lines(nest):
    return [line.strip() for line in listing(nest).splitlines()]


def test_a_mark_makes_transfers_of_the_loops_from_it_inwards():
    schedule, load, store = cached()
    plain = lines(form_transfers(lower(schedule)))
    assert "copy inside[0 :+ 6, 0 :+ 6] from x[0 :+ 6, 0 :+ 6]" in plain
    load.dma(load.leaves[1])
    store.dma(store.leaves[0])
    before = lower(schedule)
    assert lines(before).count("dma:") == 2
    after = form_transfers(tensorize(before, {}))
    verify_nest(after)
    assert "dma:" not in lines(after)
    assert "copy inside[i, 0 :+ 6] from x[i, 0 :+ 6]" in lines(after)
    assert "copy y[0 :+ 6, 0 :+ 6] from y.out[0 :+ 6, 0 :+ 6]" in lines(after)
    values = np.random.default_rng(0).integers(-64, 64, X.shape, dtype=np.int8)
    for nest in (before, after):
        assert (interpret(nest, {nest.inputs[0]: values})[nest.outputs[0]] == 2 * values).all()


def test_a_marked_copy_in_a_loop_that_a_split_cuts_short_is_the_one_without_a_mark():
    nests = []
    for marks in (False, True):
        schedule, load, store = cached(lambda i, j: select(j >= 1, X[i, j - 1], 7), split=4)
        if marks:
            load.dma(load.leaves[0])
            store.dma(store.leaves[1])
        nests.append(lines(form_transfers(lower(schedule))))
    assert nests[0] == nests[1]
    assert any(line.endswith("padding 7") for line in nests[1])


@pytest.mark.parametrize(("function", "reason"), [
    (lambda i, j: X[j, i], r"x\[j, i\] becomes inside\[i, j\], which is a transposition"),
    (lambda i, j: X[i, 5 - j], "in x goes -1 elements further each time"),
    (lambda i, j: X[i // 2, j], "in x is not a sum of loops times constants"),
    (lambda i, j: X[i, 0], r"x\[i, 0\] is the same for all 6 of j; mark a loop inside it"),
    (lambda i, j: select(i + j < 6, X[i + j, j], 0), "in x moves with 2 loops, i and j; a transf"),
    (lambda i, j: X[i, i], r"x\[i, i\] moves along two dimensions with i"),
    (lambda i, j: select(i < 3, X[i, j], 0), "a transfer pads exactly where .* lies outside x"),
], ids=["transposed", "reversed", "halves", "one column", "skewed", "diagonal", "half of it"])
def test_a_marked_copy_that_is_no_transfer_is_refused_with_the_reason(function, reason):
    schedule, load, _ = cached(function)
    load.dma(load.leaves[0])
    with pytest.raises(CompileError, match=f"^the copy to inside cannot be a transfer: .*{reason}"
                       ) as caught:
        form_transfers(lower(schedule))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", [0, 1])
def test_a_marked_copy_that_is_not_one_transfer_is_several(place):
    schedule, load, _ = cached()
    load.split(load.leaves[0], 3)
    load.dma(load.leaves[place])
    assert "copy inside[i.outer * 3 :+ 3, 0 :+ 6] from x[i.outer * 3 :+ 3, 0 :+ 6]" in lines(
        form_transfers(lower(schedule)))


def test_threads_of_a_marked_copy_make_a_transfer_each():
    def threaded(function):
        schedule, load, _ = cached(function)
        outer, _ = load.split(load.leaves[0], 3)
        load.bind_threads(outer)
        load.dma(outer)
        return lines(form_transfers(lower(schedule)))

    listed = threaded(lambda i, j: X[i, j])
    assert listed[listed.index("threads i.outer < 2:") + 1].startswith("copy inside[i.outer * 3")
    with pytest.raises(CompileError, match="which is a transposition"):
        threaded(lambda i, j: X[j, i])


def test_a_marked_copy_between_wrong_places_is_refused():
    schedule, _, store = cached(back=Scope.INP)
    store.dma(store.leaves[0])
    with pytest.raises(CompileError, match=r"copy to y cannot be .*inp cannot be stored; acc, out "
                                           r"can"):
        form_transfers(lower(schedule))
    schedule, _, store = cached(back=Scope.DRAM)
    store.dma(store.leaves[0])
    with pytest.raises(CompileError, match=r"y\.dram lies in dram and y in dram; one must lie in "
                                           r"dram, one in a scratchpad"):
        form_transfers(lower(schedule))


def test_a_marked_loop_around_other_stages_is_refused():
    schedule, _, store = cached(split=3)
    store.dma(store.leaves[0])
    with pytest.raises(CompileError, match=r"copy to y cannot be .*inside the loops over \S+outer "
                                           r"is more than one assignment; mark a loop inside them"):
        form_transfers(lower(schedule))


@pytest.mark.parametrize(("border", "pieces", "right"), [
    (1, 4, True), (1, 3, False), (1, 8, True), (0, 3, True), (0, 4, True)])
def test_pieces_of_a_padded_buffer_must_divide_it(border, pieces, right):
    """The last piece would go on beyond the buffer: a load pads whatever lies outside DRAM."""
    shape = (6 + 2 * border, 6)
    inside = compute("inside", shape, lambda i, j: select(
        both(border <= i, i < border + 6), X[i - border, j], 7) if border else X[i, j])
    y = compute("y", shape, lambda i, j: inside[i, j])
    schedule = Schedule(y)
    schedule[inside].scope = Scope.INP
    i, _ = schedule[inside].leaves
    _, near = schedule[inside].split(i, pieces)
    schedule[inside].dma(near)
    if right:
        assert is_right(form_transfers(lower(schedule)), y)
    else:
        with pytest.raises(CompileError, match="it may reach beyond inside, but a transfer is cut "
                                               "only where x ends; divide inside evenly"):
            form_transfers(lower(schedule))
