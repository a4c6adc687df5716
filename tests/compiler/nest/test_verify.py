"""Nests that are wrong are refused with a sentence that names the statement."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import (
    Axis,
    Binary,
    Cast,
    Constant,
    Select,
    both,
    maximum,
    minimum,
    select,
    total,
)
from microtron.compiler.expression.tensor import placeholder, reduce_axis
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
    Region,
    Scope,
    Sequence,
    Start,
    When,
    make_sequence,
)
from microtron.compiler.nest.verify_nest import MOST_THREADS, verify_nest

from .nests import Relu, access, loop, region, threads

X = Buffer("x", (8,), "int8")
Y = Buffer("y", (8,), "int8")
BUF = Buffer("a", (8,), "int8", Scope.INP)
i, j, t = Axis("i", 8), Axis("j", 4), Axis("t", 2)


def refused(body, message, inputs=(X,), outputs=(Y,)):
    with pytest.raises(CompileError) as caught:
        verify_nest(Nest(inputs, outputs, body))
    assert str(caught.value) == message


def accepted(body, inputs=(X,), outputs=(Y,)):
    verify_nest(Nest(inputs, outputs, body))


def assign(target, source):
    return Assign(access(Y, target), access(X, source))


def test_a_right_nest_is_accepted():
    verify_nest(Relu().nest())


def test_a_buffer_is_used_only_inside_its_allocation():
    fill, use = Assign(access(BUF, 0), access(X, 0)), Assign(access(Y, 0), access(BUF, 0))
    accepted(Allocate(BUF, make_sequence(fill, use)))
    refused(make_sequence(Allocate(BUF, fill), use),
            "y[0] = a[0]: a is used outside its allocation")
    refused(make_sequence(fill, use), "a[0] = x[0]: a is used outside its allocation")
    refused(make_sequence(Copy(region(BUF, (0, 8)), region(X, (0, 8)))),
            "copy a[0 :+ 8] from x[0 :+ 8]: a is used outside its allocation")


def test_a_buffer_is_allocated_once_at_a_time():
    fill = Assign(access(BUF, 0), access(X, 0))
    refused(Allocate(BUF, Allocate(BUF, fill)),
            "allocate a: int8[8] in inp: the buffer exists already")
    refused(Allocate(X, fill), "allocate x: int8[8] in dram: the buffer exists already")
    accepted(make_sequence(Allocate(BUF, fill), Allocate(BUF, fill), assign(0, 0)))


def test_a_buffer_has_a_type_and_extents_that_exist():
    refused(Allocate(Buffer("a", (8,), "index"), Sequence(())),
            "allocate a: index[8] in dram: there is no type 'index' for a buffer")
    refused(Allocate(Buffer("a", (8, 0), "int8"), Sequence(())),
            "allocate a: int8[8, 0] in dram: extents are at least 1")
    refused(Sequence(()), "y: int9[8] in dram: there is no type 'int9' for a buffer",
            outputs=(Buffer("y", (8,), "int9"),))


def test_an_axis_is_used_only_inside_its_loop():
    accepted(loop(i, assign(i, i)))
    refused(make_sequence(loop(i, assign(i, i)), assign(i, 0)),
            "y[i] = x[0]: axis i is used outside its loop")
    refused(loop(j, When(i < 3, assign(j, j))), "when i < 3: axis i is used outside its loop")
    refused(loop(j, Copy(region(Y, (0, 1)), region(X, (i, 1)))),
            "copy y[0] from x[i]: axis i is used outside its loop")


def test_an_axis_runs_once_at_a_time():
    refused(loop(i, loop(i, assign(i, i))),
            "for i < 8: the axis already runs in a loop around this one")
    accepted(make_sequence(loop(i, assign(i, i)), loop(i, assign(i, i))))


@pytest.mark.parametrize(("index", "low", "high"), [
    (i + 1, 1, 8), (i - 1, -1, 6), (i * 2, 0, 14), (i * 2 // 3 + 4, 4, 8), (Constant(8), 8, 8),
])
def test_an_index_stays_inside_its_buffer(index, low, high):
    with pytest.raises(CompileError, match=re.escape(
            f"in x goes from {low} to {high}, but there are only 0 to 7")):
        verify_nest(Nest((X,), (Y,), loop(i, assign(i, index))))
    with pytest.raises(CompileError, match=re.escape(f"in y goes from {low} to {high}, but")):
        verify_nest(Nest((X,), (Y,), loop(i, assign(index, i))))


def test_the_message_names_the_statement_and_the_index():
    refused(loop(i, assign(i, i + 1)),
            "y[i] = x[i + 1]: i + 1 in x goes from 1 to 8, but there are only 0 to 7")


def test_an_index_whose_terms_cancel_is_inside():
    accepted(loop(t, loop(j, assign(t * 4 + j, t * 4 + j))))
    accepted(loop(i, loop(j, assign((i * 4 + j * 2) - i * 4, 0))))


def test_a_condition_keeps_an_index_inside():
    accepted(loop(i, When(i + 1 < 8, assign(i, i + 1))))
    accepted(loop(i, When(both(i >= 1, i < 8), assign(i, i - 1))))
    accepted(loop(i, loop(j, When(i * 4 + j < 8, assign(i * 4 + j, i * 4 + j)))))
    refused(loop(i, When(i < 7, assign(i, i + 2))),
            "y[i] = x[i + 2]: i + 2 in x goes from 2 to 8, but there are only 0 to 7")


def test_a_condition_holds_only_inside_its_statement():
    refused(loop(i, When(i < 7, assign(i, i + 1)), assign(i, i + 1)),
            "y[i] = x[i + 1]: i + 1 in x goes from 1 to 8, but there are only 0 to 7")


def test_what_never_runs_may_say_anything():
    accepted(make_sequence(loop(i, assign(i, i)), loop(i, When(i < 0, assign(i, i + 9)))))


def test_what_never_runs_writes_nothing():
    refused(loop(i, When(i < 0, assign(i, i))), "y is a result, but nothing writes it")


def test_a_select_keeps_an_index_inside():
    value = select(i >= 1, access(X, i - 1), 0)
    accepted(loop(i, Assign(access(Y, i), value)))
    refused(loop(i, Assign(access(Y, i), replace(value, then=value.otherwise,
                                                 otherwise=value.then))),
            "y[i] = select(1 <= i, 0, x[i - 1]): i - 1 in x goes from -1 to 6, but there are only "
            "0 to 7")


def test_a_region_of_an_intrinsic_stays_inside_its_buffer():
    call = Invoke("double", (region(Y, (i, 2)), region(X, (0, 8))))
    refused(loop(i, call), "double(y[i :+ 2], x[0 :+ 8]): i in y goes from 0 to 8, but there are "
                           "only 0 to 7")


def test_a_copy_may_leave_its_buffers_but_not_miss_them():
    accepted(loop(i, Copy(region(Y, (i, 3)), region(X, (i - 1, 3)), 0)))
    accepted(loop(i, Copy(region(Y, (i, 3)), region(X, (i + 6, 3)))))
    refused(Copy(region(Y, (0, 3)), region(X, (8, 3))),
            "copy y[0 :+ 3] from x[8 :+ 3]: 8 in x goes from 8 to 10, but there are only 0 to 7")
    refused(loop(i, Copy(region(Y, (i - 12, 3)), region(X, (0, 3)))),
            "copy y[i - 12 :+ 3] from x[0 :+ 3]: i - 12 in y goes from -12 to -3, but there are "
            "only 0 to 7")


def test_a_copy_may_be_all_padding():
    accepted(Copy(region(Y, (0, 3)), region(X, (8, 3)), 0))


def test_an_index_that_reads_data_has_the_range_of_its_type():
    data = access(X, i).cast("index")
    refused(loop(i, assign(i, data)),
            "y[i] = x[index(x[i])]: index(x[i]) in x goes from -128 to 127, but there are only 0 "
            "to 7")
    verify_nest(Nest((X,), (Y,), loop(i, assign(i, maximum(minimum(data, 7), 0)))))


def test_what_is_known_of_data_is_forgotten_for_somebody_may_write_them():
    data = access(Y, i).cast("index")
    refused(loop(i, assign(i, i), When(both(data >= 0, data < 8), make_sequence(
        assign(i, i), Assign(access(Y, data), access(X, i))))),
        "y[index(y[i])] = x[i]: index(y[i]) in y goes from -128 to 127, but there are only 0 to 7")
    refused(loop(i, When(access(X, i).cast("float32").cast("index") < 3, assign(i, i))),
            "when index(float32(x[i])) < 3: index(float32(x[i])) is not an index: only +, -, *, "
            "//, %, min, max and select of axes and whole numbers are")


@pytest.mark.parametrize(("statement", "message"), [
    (Assign(access(Y, 0), access(X, 0).cast("int32")),
     "y[0] = int32(x[0]): a value of type int32 is assigned to int8; cast it"),
    (When(Constant(1), Sequence(())), "when 1: the condition has type index, but must be bool"),
    (Assign(access(Y, 0), Binary("+", access(X, 0), Constant(1, "int32"))),
     "y[0] = x[0] + 1: x[0] + 1: the types are int8 and int32; cast one of them"),
    (Assign(access(Y, 0), Select(Constant(1) < 2, access(X, 0), Constant(1, "int32"))),
     "y[0] = select(1 < 2, x[0], 1): select(1 < 2, x[0], 1): the types are int8 and int32; cast "
     "one of them"),
    (Copy(region(Y, (0, 3)), region(X, (0, 4))),
     "copy y[0 :+ 3] from x[0 :+ 4]: the target's extents are (3,), the source's are (4,)"),
    (Copy(region(Y, (0, 3)), region(X, (0, 3)), 128),
     "copy y[0 :+ 3] from x[0 :+ 3], padding 128: padding 128 does not fit in int8"),
    (Copy(region(Y, (0, 3), (0, 2)), region(X, (0, 3), (0, 2))),
     "copy y[0 :+ 3, 0 :+ 2] from x[0 :+ 3, 0 :+ 2]: y has 1 dimensions, but the region has 2 "
     "starts and 2 extents"),
    (Copy(Region(Y, (), (3,)), region(X, (0, 3))),
     "copy y[] from x[0 :+ 3]: y has 1 dimensions, but the region has 0 starts and 1 extents"),
    (Invoke("f", (region(Y, (0, 0)),)), "f(y[0 :+ 0]): extents are at least 1, but y's are (0,)"),
    (Start("f", region(Y, (0, 9)), 0),
     "start of f: y[0 :+ 9] = 0: 0 in y goes from 0 to 8, but there are only 0 to 7"),
    (Start("f", region(Y, (0, 8)), 128), "start of f: y[0 :+ 8] = 128: 128 does not fit in int8"),
    (Assign(access(Y, 0), access(X, 0, 0)),
     "y[0] = x[0, 0]: x[0, 0] has 2 indices, but the buffer has 1 dimensions"),
])
def test_types_and_extents_fit(statement, message):
    refused(statement, message)


def test_a_copy_does_not_convert():
    wide = Buffer("wide", (8,), "int32")
    refused(Copy(region(wide, (0, 8)), region(X, (0, 8))),
            "copy wide[0 :+ 8] from x[0 :+ 8]: int8 is copied to int32; a copy does not convert",
            outputs=(wide,))


def test_tensor_expressions_do_not_belong_in_a_nest():
    tensor, k = placeholder("v", (8,), "int8"), reduce_axis("k", 8)
    refused(Assign(access(Y, 0), tensor[0]), "y[0] = v[0]: v[0] belongs in a tensor expression; a "
                                             "nest has accesses and loops")
    refused(loop(k, Assign(access(Y, 0), total(access(X, k), k))),
            "y[0] = sum(x[k], over k): sum(x[k], over k) belongs in a tensor expression; a nest "
            "has accesses and loops")


def test_nothing_is_read_before_something_is_written_to_it():
    fill, use = Assign(access(BUF, 0), access(X, 0)), Assign(access(Y, 0), access(BUF, 0))
    refused(Allocate(BUF, make_sequence(use, fill)),
            "y[0] = a[0]: a is read, but nothing has written it yet")
    refused(Assign(access(Y, 0), access(Y, 0)),
            "y[0] = y[0]: y is read, but nothing has written it yet")
    choice = select(access(BUF, 0) < 3, Constant(0), Constant(1))
    refused(Allocate(BUF, assign(choice, 0)),
            "y[select(a[0] < 3, 0, 1)] = x[0]: a is read, but nothing has written it yet")
    refused(Allocate(BUF, assign(0, choice)),
            "y[0] = x[select(a[0] < 3, 0, 1)]: a is read, but nothing has written it yet")
    refused(Allocate(BUF, When(access(BUF, 0) < 3, fill)),
            "when a[0] < 3: a is read, but nothing has written it yet")
    refused(Allocate(BUF, Invoke("f", (region(Y, (0, 8)), region(BUF, (0, 8))))),
            "f(y[0 :+ 8], a[0 :+ 8]): a is read, but nothing has written it yet")
    refused(Allocate(BUF, Copy(region(Y, (0, 8)), region(BUF, (0, 8)))),
            "copy y[0 :+ 8] from a[0 :+ 8]: a is read, but nothing has written it yet")


def test_an_allocation_forgets_what_was_written_before():
    fill, use = Assign(access(BUF, 0), access(X, 0)), Assign(access(Y, 0), access(BUF, 0))
    refused(make_sequence(Allocate(BUF, fill), Allocate(BUF, use)),
            "y[0] = a[0]: a is read, but nothing has written it yet")


def test_every_result_is_written():
    refused(Sequence(()), "y is a result, but nothing writes it")


def test_what_is_inside_marked_loops_is_checked_too():
    accepted(Marked("gemm", loop(i, assign(i, i))))
    refused(Marked("gemm", loop(i, assign(i, i + 1))),
            "y[i] = x[i + 1]: i + 1 in x goes from 1 to 8, but there are only 0 to 7")


def test_names_in_messages_are_those_of_the_listing():
    other, again = Buffer("x", (8,), "int8"), Axis("i", 8)
    refused(loop(i, loop(again, Assign(access(other, i), access(X, again + 1)))),
            "x_2[i] = x[i_2 + 1]: i_2 + 1 in x goes from 1 to 8, but there are only 0 to 7",
            outputs=(other,))


def test_threads_that_share_a_buffer_are_refused():
    with pytest.raises(CompileError, match=re.escape(
            "threads i < 4: copy a[0, 0 :+ 16] from x[i, 0 :+ 16], padding 0 may write the same "
            "elements in iterations 0 and 1")):
        verify_nest(Relu().sharing_the_row())


def test_the_message_says_who_reads_what_whom_writes():
    refused(make_sequence(loop(i, assign(i, i)),
                          threads(t, Assign(access(Y, t * 4), access(Y, 4 - t * 3)))),
            "threads t < 2: y[t * 4] = y[4 - t * 3] in iteration 0 reads elements that "
            "y[t * 4] = y[4 - t * 3] may write in iteration 1")


def test_a_loop_that_is_not_threads_may_depend_on_itself():
    step = When(i >= 1, Assign(access(Y, i), access(Y, i - 1)))
    first = Assign(access(Y, 0), access(X, 0))
    accepted(make_sequence(first, loop(i, step)))
    accepted(make_sequence(first, Loop(i, step, LoopKind.UNROLLED)))
    with pytest.raises(CompileError, match="threads i < 8: y"):
        accepted(make_sequence(first, threads(i, step)))


def test_too_many_threads_are_refused():
    many = Axis("i", MOST_THREADS + 1)
    wide = Buffer("x", (MOST_THREADS + 1,), "int8")
    refused(threads(many, Assign(access(wide, many), Constant(1, "int8"))),
            "threads i < 65: there can be 64 threads at most", inputs=(), outputs=(wide,))


def test_a_cast_in_a_value_is_not_an_index():
    accepted(loop(i, Assign(access(Y, i), Cast("int8", i))))


@pytest.mark.parametrize("kind", [LoopKind.PARALLEL, LoopKind.VECTORIZED])
def test_what_runs_at_once_is_independent(kind):
    accepted(Loop(i, assign(i, i), kind))
    refused(Loop(i, assign(0, i), kind), f"{kind.value} i < 8: y[0] = x[i] may write the same "
                                         f"elements in iterations 0 and 1")


def test_many_parallel_iterations_are_compared_with_the_first_and_the_last():
    many = Axis("i", 1000)
    large, result = Buffer("x", (1000,), "int8"), Buffer("y", (1000,), "int8")
    copy = Assign(access(result, many), access(large, many))
    accepted(Loop(many, copy, LoopKind.PARALLEL), (large,), (result,))
    folded = Assign(access(result, many % 999), access(large, many))
    refused(Loop(many, folded, LoopKind.PARALLEL),
            "parallel i < 1000: y[i % 999] = x[i] may write the same elements in iterations 0 and "
            "999", (large,), (result,))


def test_vectors_have_few_lanes_and_parallel_loops_nothing_around_them():
    lanes = Axis("i", MOST_THREADS + 1)
    large = Buffer("y", (MOST_THREADS + 1,), "int8")
    refused(Loop(lanes, Assign(access(large, lanes), access(X, 0)), LoopKind.VECTORIZED),
            f"vector i < {MOST_THREADS + 1}: there can be {MOST_THREADS} lanes at most",
            outputs=(large,))
    refused(loop(j, Loop(i, assign(i, i), LoopKind.PARALLEL)),
            "parallel i < 8: a parallel loop is the outermost one, or inside such loops only")
