"""Nests do what they say, in any order of their threads."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import (
    ARITHMETIC,
    Axis,
    Call,
    Constant,
    Function,
    binary,
    both,
    either,
    maximum,
    select,
)
from microtron.compiler.expression.rewrite import substitute
from microtron.compiler.expression.scalars import OF_FLOATS, OF_INTEGERS
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.nest.nest import (
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Marked,
    Nest,
    Scope,
    Sequence,
    Start,
    When,
    make_sequence,
)
from microtron.compiler.nest.run import interpret, uninitialized_array
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.isa.arithmetic import requantize_array

from ..expression.indices import AXES, INDICES
from .nests import Relu, access, loop, region, threads

RNG = np.random.default_rng(2)
i, j = Axis("i", 8), Axis("j", 4)
X, Y = Buffer("x", (8,), "int8"), Buffer("y", (8,), "int8")
NUMBERS = np.array([3, -5, 127, -128, 0, 1, -1, 64], np.int8)


def run(body, inputs=None, **options):
    """What a nest leaves in Y, given numbers in X."""
    return interpret(Nest((X,), (Y,), body), inputs or {X: NUMBERS}, **options)[Y]


def matmul(rows, columns, depth):
    """A matmul in threads over columns, with sums in a buffer of each thread's own."""
    x, w = Buffer("x", (rows, depth), "int8"), Buffer("w", (columns, depth), "int8")
    y = Buffer("y", (rows, columns), "int32")
    r, c, k = Axis("r", rows), Axis("c", columns), Axis("k", depth)
    acc = Buffer("acc", (1,), "int32", Scope.ACC)
    product = access(x, r, k).cast("int32") * access(w, c, k).cast("int32")
    return Nest((x, w), (y,), loop(r, threads(c, Allocate(acc, make_sequence(
        Assign(access(acc, 0), Constant(0, "int32")),
        loop(k, Assign(access(acc, 0), access(acc, 0) + product)),
        Assign(access(y, r, c), access(acc, 0)))))))


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_a_matmul_is_numpys_in_any_order_of_threads(seed):
    nest = matmul(3, 5, 7)
    verify_nest(nest)
    x, w = (RNG.integers(-128, 128, buffer.shape, np.int8) for buffer in nest.inputs)
    result, = interpret(nest, dict(zip(nest.inputs, (x, w), strict=True)), seed=seed).values()
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, x.astype(np.int32) @ w.astype(np.int32).T)


@pytest.mark.parametrize("seed", range(4))
def test_a_padded_row_in_threads_is_what_it_says(seed):
    relu = Relu()
    x = RNG.integers(-128, 128, relu.x.shape, np.int8)
    np.testing.assert_array_equal(interpret(relu.nest(), {relu.x: x}, seed=seed)[relu.y],
                                  np.maximum(x, 0))


def test_threads_that_depend_on_each_other_show_when_they_are_interleaved():
    relu = Relu()
    x = RNG.integers(-128, 128, relu.x.shape, np.int8)
    results = [interpret(relu.sharing_the_row(), {relu.x: x}, seed=seed)[relu.y]
               for seed in (None, *range(10))]
    np.testing.assert_array_equal(results[0], np.maximum(x, 0))
    assert any((result != results[0]).any() for result in results)


def test_a_seed_gives_the_same_order_every_time():
    relu = Relu()
    x = RNG.integers(-128, 128, relu.x.shape, np.int8)
    once, again = (interpret(relu.sharing_the_row(), {relu.x: x}, seed=7)[relu.y]
                   for _ in range(2))
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
def test_other_loops_run_in_order_whatever_the_seed(kind):
    step = When(i >= 1, Assign(access(Y, i), access(Y, i - 1) + 1))
    body = make_sequence(Assign(access(Y, 0), Constant(5, "int8")), Loop(i, step, kind))
    assert run(body, seed=3).tolist() == [5, 6, 7, 8, 9, 10, 11, 12]


def test_undefined_contents_show():
    assert run(Assign(access(Y, 1), access(X, 0))).tolist() == [-91, 3, *[-91] * 6]
    assert uninitialized_array(Buffer("a", (1, 2), "int32")).tolist() == [[-0x5A5A5A5B] * 2]
    assert uninitialized_array(Buffer("a", (3,), "bool")).shape == (3,)
    assert np.isnan(uninitialized_array(Buffer("a", (2,), "float32"))).all()


def test_an_allocation_forgets_what_it_held():
    a = Buffer("a", (8,), "int8", Scope.LOCAL)
    body = loop(i, Allocate(a, make_sequence(
        When(i < 1, Assign(access(a, 0), access(X, 0))), Assign(access(Y, i), access(a, 0)))))
    assert run(body).tolist() == [3, *[-91] * 7]


def test_inputs_are_never_written_to():
    given_ = NUMBERS.copy()
    nest = Nest((X,), (X,), loop(i, Assign(access(X, i), Constant(0, "int8"))))
    assert interpret(nest, {X: given_})[X].tolist() == [0] * 8
    assert given_.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("padding", [None, 9])
def test_a_copy_reads_its_source_before_it_writes_its_target(padding):
    nest = Nest((X,), (X,), Copy(region(X, (1, 7)), region(X, (0, 7)), padding))
    assert interpret(nest, {X: NUMBERS})[X].tolist() == [3, *NUMBERS.tolist()[:7]]


PAD = -91


@pytest.mark.parametrize(("target", "source", "padding", "result"), [
    ((0, 8), (0, 8), None, [3, -5, 127, -128, 0, 1, -1, 64]),
    ((0, 4), (-2, 4), 9, [9, 9, 3, -5, PAD, PAD, PAD, PAD]),
    ((2, 4), (6, 4), 9, [PAD, PAD, -1, 64, 9, 9, PAD, PAD]),
    ((0, 4), (-2, 4), None, [PAD, PAD, 3, -5, PAD, PAD, PAD, PAD]),
    ((6, 4), (1, 4), None, [PAD, PAD, PAD, PAD, PAD, PAD, -5, 127]),
    ((-2, 4), (1, 4), 9, [-128, 0, PAD, PAD, PAD, PAD, PAD, PAD]),
    ((-2, 12), (-3, 12), 9, [9, 3, -5, 127, -128, 0, 1, -1]),
    ((1, 3), (20, 3), 9, [PAD, 9, 9, 9, PAD, PAD, PAD, PAD]),
    ((1, 3), (-20, 3), None, [PAD] * 8),
    ((20, 3), (0, 3), 9, [PAD] * 8),
])
def test_a_copy_leaves_its_buffers_as_it_says(target, source, padding, result):
    assert run(Copy(region(Y, target), region(X, source), padding)).tolist() == result


@given(*[st.tuples(st.integers(-7, 7), st.integers(-7, 7))] * 2,
       st.tuples(st.integers(1, 8), st.integers(1, 8)), st.none() | st.integers(-128, 127))
def test_a_copy_is_one_element_after_the_other(target, source, extents, padding):
    x, y = Buffer("x", (5, 6), "int8"), Buffer("y", (6, 4), "int8")
    a = np.arange(30, dtype=np.int8).reshape(5, 6)
    expected = uninitialized_array(y)
    for place in np.ndindex(*extents):
        to = tuple(np.add(target, place))
        at = tuple(np.add(source, place))
        if all(0 <= index < extent for index, extent in zip(to, y.shape, strict=True)):
            if all(0 <= index < extent for index, extent in zip(at, x.shape, strict=True)):
                expected[to] = a[at]
            elif padding is not None:
                expected[to] = padding
    copy = Copy(region(y, *zip(target, extents, strict=True)),
                region(x, *zip(source, extents, strict=True)), padding)
    np.testing.assert_array_equal(interpret(Nest((x,), (y,), copy), {x: a})[y], expected)


def test_an_intrinsic_gets_views_of_its_regions():
    def double(target, source):
        target[...] = source * np.int8(2)

    body = loop(j, Invoke("double", (region(Y, (j * 2, 2)), region(X, (6 - j * 2, 2)))))
    assert run(body, intrinsics={"double": double}).tolist() == [-2, -128, 0, 2, -2, 0, 6, -10]


def test_a_start_gives_all_of_its_region_one_value():
    body = make_sequence(Start("gemm", region(Y, (0, 8)), 1), Start("gemm", region(Y, (2, 3)), -7))
    assert run(body).tolist() == [1, 1, -7, -7, -7, 1, 1, 1]


def test_an_intrinsic_cannot_write_to_what_it_only_reads():
    def wrong(target, source):
        source[...] = 0

    with pytest.raises(ValueError, match="read-only"):
        run(Invoke("wrong", (region(Y, (0, 8)), region(X, (0, 8)))), intrinsics={"wrong": wrong})


def test_marked_loops_and_empty_blocks_run_as_they_stand():
    body = make_sequence(Sequence(()), Marked("gemm", loop(i, Assign(access(Y, i), access(X, i)))))
    assert run(body).tolist() == NUMBERS.tolist()


@given(INDICES)
def test_indices_are_worth_what_the_evaluator_says(index):
    shape = tuple(axis.extent for axis in AXES)
    y = Buffer("y", shape, "int64")
    body = Assign(access(y, *AXES), index.cast("int64"))
    for axis in reversed(AXES):
        body = Loop(axis, body)
    tensor = compute("y", shape, lambda *axes: _move(index, axes).cast("int64"))
    np.testing.assert_array_equal(interpret(Nest((), (y,), body), {})[y], evaluate(tensor, {}))


def _move(index, axes):
    return substitute(index, dict(zip(AXES, axes, strict=True)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float32"])
@pytest.mark.parametrize("operator", sorted(ARITHMETIC))
def test_arithmetic_is_the_evaluators(operator, dtype):
    if operator in (OF_INTEGERS if dtype.startswith("float") else OF_FLOATS):
        return
    a = np.array([0, 1, 7, 100, 127, 3, 2, 64], dtype)
    b = np.array([3, 2, 5, 100, 1, 0, 7, 3], dtype)
    if dtype.startswith("int"):
        a[1::2] *= -1
    check_same(lambda x, y: binary(operator, x, y), a, b)


@pytest.mark.parametrize("function", [
    lambda x, y: select(both(x < y, x >= 2), maximum(x, y), x - y),
    lambda x, y: select(either(x.equals(y), x <= 1), x, y),
    lambda x, y: (x.cast("int8").cast("float32") * 0.75).cast("int16").cast("int32") + y,
    lambda x, y: Call(Function("requantize", "int8", requantize_array), (
        x, y, Constant(1 << 30, "int32"), Constant(40, "int32"))),
    lambda x, y: (x < y).cast("int32") + x.cast("index").cast("int32"),
])
def test_everything_else_is_the_evaluators(function):
    check_same(function, *(RNG.integers(-2**31, 2**31, 8, np.int32) for _ in range(2)))


def check_same(function, a, b):
    """One function of two numbers as a tensor expression and as a nest."""
    one, other = (placeholder(name, (8,), str(a.dtype)) for name in "ab")
    tensor = compute("y", (8,), lambda i: function(one[i], other[i]))
    x, y = (Buffer(name, (8,), str(a.dtype)) for name in "ab")
    result = Buffer("y", (8,), tensor.dtype)
    nest = Nest((x, y), (result,), loop(i, Assign(
        access(result, i), function(access(x, i), access(y, i)))))
    verify_nest(nest)
    expected = evaluate(tensor, {one: a, other: b})
    found = interpret(nest, {x: a, y: b})[result]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_only_the_chosen_side_of_a_select_is_read():
    body = loop(i, Assign(access(Y, i), select(i >= 1, access(X, i - 1), 0)))
    assert run(body).tolist() == [0, *NUMBERS.tolist()[:7]]


@pytest.mark.parametrize(("body", "message"), [
    (loop(i, Assign(access(Y, i), access(X, i - 1))), "x of shape (8,) has no element [-1]"),
    (Assign(access(Y, 8), access(X, 0)), "y of shape (8,) has no element [8]"),
    (Invoke("f", (region(Y, (6, 3)),)), "y of shape (8,) has no element [8]"),
    (Invoke("f", (region(Y, (-1, 3)),)), "y of shape (8,) has no element [-1]"),
    (Start("f", region(Y, (6, 3)), 0), "y of shape (8,) has no element [8]"),
    (Invoke("g", ()), "there is no meaning for intrinsic g; there are f"),
])
def test_what_cannot_be_done_is_refused(body, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        run(body, intrinsics={"f": lambda target: None})


@pytest.mark.parametrize(("inputs", "message"), [
    ({Y: NUMBERS}, "x is not given"),
    ({X: NUMBERS[1:]}, "x is int8 of shape (8,), but int8 of shape (7,) is given"),
    ({X: NUMBERS.astype(np.int32)}, "x is int8 of shape (8,), but int32 of shape (8,) is given"),
])
def test_an_input_that_does_not_fit_is_refused(inputs, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        run(Assign(access(Y, 0), access(X, 0)), inputs)
