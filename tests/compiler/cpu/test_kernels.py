"""Nests as kernels: one for each outermost statement, and large buffers outside of them."""

import numpy as np

from microtron.compiler.cpu.kernels import STACK, steps_of
from microtron.compiler.expression.expression import Axis
from microtron.compiler.nest.nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Loop,
    LoopKind,
    Nest,
    Scope,
    make_sequence,
)

from .machine import run

SIZE = STACK // 4 + 1           # elements of a buffer that the stack does not take
X, Y = Buffer("x", (3, SIZE), "int32"), Buffer("y", (3, SIZE), "int32")


def rotate():
    """Rows from the end to the start, each through a buffer of its own."""
    i, j, k = Axis("i", 3), Axis("j", SIZE), Axis("k", SIZE)
    row = Buffer("row", (SIZE,), "int32", Scope.LOCAL)
    return Loop(i, Allocate(row, make_sequence(
        Loop(j, Assign(Access(row, (j,)), Access(X, (i, SIZE - 1 - j)))),
        Loop(k, Assign(Access(Y, (i, k)), Access(row, (k,)))))), LoopKind.PARALLEL)


def test_a_large_buffer_has_a_place_for_each_iteration_that_threads_share():
    steps = steps_of(rotate(), "kernel", "node")
    kernel, = steps.kernels
    wide, = steps.scratch
    assert wide.shape == (3, SIZE)
    assert (kernel.reads, set(kernel.writes)) == ((X,), {Y, wide})
    given = np.arange(3 * SIZE, dtype=np.int32).reshape(3, SIZE)
    status, found = run(Nest((X,), kernel.writes, kernel.body), {X: given}, ((1, 3), (0, 1)))
    assert status == 0
    np.testing.assert_array_equal(found[Y], given[:, ::-1])


def test_statements_in_a_row_are_kernels_and_what_is_between_them_is_scratch():
    between = Buffer("between", (3, SIZE), "int32")
    i, j = Axis("i", 3), Axis("j", SIZE)
    body = Allocate(between, make_sequence(
        Loop(i, Loop(j, Assign(Access(between, (i, j)), Access(X, (i, j)) + 1))),
        Loop(i, Loop(j, Assign(Access(Y, (i, j)), Access(between, (i, j)) * 2)))))
    steps = steps_of(body, "kernel", "node")
    assert [each.name for each in steps.kernels] == ["kernel", "kernel_1"]
    assert [(each.reads, each.writes) for each in steps.kernels] == [((X,), (between,)),
                                                                     ((between,), (Y,))]
    assert steps.scratch == (between,)
