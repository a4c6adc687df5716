"""Tensor expressions are checked when they are built."""

from __future__ import annotations

import re

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import Axis, both, select, total
from microtron.compiler.expression.tensor import (
    compute,
    placeholder,
    reduce_axis,
    topological_order,
)

X = placeholder("x", (8, 4), "int8")
V = placeholder("v", (8,), "int32")
K = reduce_axis("k", 4)


def test_a_computed_tensor_knows_its_shape_type_axes_and_inputs():
    y = compute("y", (8,), lambda i: total(X[i, K].cast("int32") * V[i], K))
    assert (y.shape, y.dtype) == ((8,), "int32")
    assert [axis.name for axis in y.axes] == ["i"]
    assert y.reduce_axes == (K,)
    assert y.inputs() == (X, V)
    assert str(y) == "y[i] = sum((int32(x[i, k]) * v[i]), over k)"
    assert str(X) == "x: int8[8, 4]"


def test_whole_numbers_may_be_those_of_numpy():
    x = placeholder("x", np.array([8, 4]), "int8")
    k = reduce_axis("k", np.int16(4))
    y = compute("y", (np.int64(8),), lambda i: total(x[i, k].cast("int32"), k))
    extents = [*x.shape, *y.shape, k.extent, *(axis.extent for axis in y.axes)]
    assert extents == [8, 4, 8, 4, 8]
    assert {type(each) for each in extents} == {int}


def test_a_function_of_any_number_of_axes_gets_numbered_names():
    y = compute("y", (8, 4), lambda *axes: X[axes])
    assert [axis.name for axis in y.axes] == ["axes0", "axes1"]


def test_tensors_are_ordered_after_what_they_read():
    a = compute("a", (8,), lambda i: V[i] + 1)
    b = compute("b", (8,), lambda i: V[i] * a[i])
    c = compute("c", (8,), lambda i: b[i] - a[i])
    assert topological_order(c, b) == (V, a, b, c)


def test_a_select_allows_an_index_to_leave_where_it_is_not_used():
    y = compute("y", (10,), lambda i: select(both(i >= 1, i - 1 < 8), V[i - 1], 0))
    assert y.inputs() == (V,)


@pytest.mark.parametrize(("made", "message"), [
    (lambda: placeholder("x", (4, 0), "int8"),
     "x: extent 1 of the shape is 0, but must be a whole number from 1 to 9223372036854775807"),
    (lambda: placeholder("x", (True, 4), "int8"), "x: extent 0 of the shape is True, but must be"),
    (lambda: placeholder("x", (4, 2.0), "int8"), "x: extent 1 of the shape is 2.0, but must be"),
    (lambda: placeholder("x", (np.bool_(1),), "int8"), "x: extent 0 of the shape is"),
    (lambda: placeholder("x", (np.float64(2),), "int8"), "x: extent 0 of the shape is"),
    (lambda: placeholder("x", (10**5000,), "int8"),
     "x: extent 0 of the shape is a number of 16610 bits, but must be a whole number"),
    (lambda: placeholder("x", ("4" * 9999,), "int8"), "444…', but must be a whole number"),
    (lambda: placeholder("x", 4, "int8"), "x: shape is 4, but must be a sequence of extents"),
    (lambda: reduce_axis("k", "4"), "axis k: extent is '4', but must be a whole number"),
    (lambda: placeholder("x", (4,), "index"), "x: there is no type 'index'; there are int8"),
    (lambda: compute("y", (4,), lambda i, j: V[i]), "the function has 2 parameters, but the shape"),
    (lambda: compute("y", (4,), lambda i: 3), "y: the function gives 3, but must give"),
    (lambda: compute("y", (4,), lambda i: i), "y: i is an index, but a tensor holds numbers; cast"),
    (lambda: compute("y", (8,), lambda i: V[i + 1]),
     "y: v[(i + 1)]: (i + 1) goes from 1 to 8, but there are only 0 to 7"),
    (lambda: compute("y", (8,), lambda i: V[i - 1]), "(i - 1) goes from -1 to 6"),
    (lambda: compute("y", (9,), lambda i: select(i >= 1, V[i], 0)), "i goes from 1 to 8"),
    (lambda: compute("y", (9,), lambda i: select(i < 8, 0, V[i])), "i goes from 0 to 8"),
    (lambda: compute("y", (9,), lambda i: V[i].cast("index").cast("int32")), "i goes from 0 to 8"),
    (lambda: compute("y", (9,), lambda i: V[select(V[i] < 0, 0, 1)]), "i goes from 0 to 8"),
    (lambda: compute("y", (8,), lambda i: V[i // -2]), "divided by positive constants only"),
    (lambda: compute("y", (8,), lambda i: V[V[i].cast("index")]),
     "index(v[i]) goes from -2147483648 to 2147483647, but there are only 0 to 7"),
    (lambda: compute("y", (8,), lambda i: V[V[i].cast("float32").cast("index")]),
     "is not an index: only"),
    (lambda: compute("y", (8,), lambda i: total(V[i] + V[K], K) + 1), "a reduction must be a ten"),
    (lambda: compute("y", (8,), lambda i: V[K]), "y: axis k is neither an axis of y nor reduced"),
    (lambda: compute("y", (8,), lambda i: V[Axis("j", 2)]), "y: axis j is neither an axis of y"),
    (lambda: X[0], "x has 2 dimensions, but 1 indices are given"),
    (lambda: V[V[0]], "v[… v[0] …]: an index is made of axes, but this has type int32"),
    (lambda: V[0:2], "slice(0, 2, None) is neither an expression nor a number"),
])
def test_what_makes_no_sense_is_refused(made, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        made()
