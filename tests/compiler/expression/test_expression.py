"""Scalar expressions: types are never converted in silence, and what makes no sense is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import (
    Axis,
    Binary,
    Cast,
    Constant,
    as_expression,
    both,
    either,
    largest,
    maximum,
    minimum,
    select,
    total,
    walk,
)
from microtron.compiler.expression.tensor import placeholder, reduce_axis

X = placeholder("x", (8,), "int8")
W = placeholder("w", (8,), "int32")
F = placeholder("f", (8,), "float32")
i, j = Axis("i", 8), Axis("j", 4)
k = reduce_axis("k", 8)


@pytest.mark.parametrize(("made", "text"), [
    (lambda: i + j * 2, "(i + (j * 2))"),
    (lambda: 3 - i, "(3 - i)"),
    (lambda: 2 * i + 1, "((2 * i) + 1)"),
    (lambda: 1 + i, "(1 + i)"),
    (lambda: i // 2 % 3, "((i // 2) % 3)"),
    (lambda: W[i] >> 3, "(w[i] >> 3)"),
    (lambda: W[i] << 3, "(w[i] << 3)"),
    (lambda: i > 3, "(3 < i)"),
    (lambda: i >= j, "(j <= i)"),
    (lambda: i.equals(3), "(i == 3)"),
    (lambda: both(i < 3, j <= 2), "((i < 3) and (j <= 2))"),
    (lambda: either(i < 3, j <= 2, i < j), "(((i < 3) or (j <= 2)) or (i < j))"),
    (lambda: minimum(i, 3), "min(i, 3)"),
    (lambda: maximum(3, i), "max(3, i)"),
    (lambda: X[i].cast("int32") * W[j], "(int32(x[i]) * w[j])"),
    (lambda: select(i < 3, X[i], -128), "select((i < 3), x[i], -128)"),
    (lambda: total(W[k] * 2, k), "sum((w[k] * 2), over k)"),
    (lambda: largest(X[k], k), "max(x[k], over k)"),
])
def test_operators_build_what_they_say(made, text):
    assert str(made()) == text


@pytest.mark.parametrize(("made", "result"), [
    (lambda: i + 0, i), (lambda: 0 + i, i), (lambda: i - 0, i), (lambda: i * 1, i),
    (lambda: 1 * i, i), (lambda: i * 0, Constant(0)), (lambda: i // 1, i),
    (lambda: i % 1, Constant(0)), (lambda: Constant(7) // 2, Constant(3)),
    (lambda: Constant(-7) // 2, Constant(-4)), (lambda: Constant(-7) % 4, Constant(1)),
    (lambda: minimum(3, 5), Constant(3)),
])
def test_indices_are_simplified(made, result):
    assert made() == result


def test_numbers_that_may_wrap_are_not_folded():
    assert isinstance(Constant(100, "int8") + Constant(100, "int8"), Binary)


def test_a_plain_number_takes_the_type_of_the_other_side():
    assert (X[i] + 1).right == Constant(1, "int8")
    assert (F[i] * 2.5).right == Constant(2.5, "float32")
    assert (W[i] + np.int64(7)).right == Constant(7, "int32")
    assert select(i < 3, 1, X[i]).then == Constant(1, "int8")


def test_comparisons_are_conditions():
    assert (X[i] < X[j]).dtype == "bool"
    assert (X[i] + X[j]).dtype == "int8"


def test_a_cast_to_its_own_type_is_nothing():
    assert X[i].cast("int8") == X[i]
    assert isinstance(X[i].cast("int32"), Cast)


def test_equal_expressions_are_equal_but_axes_are_themselves():
    assert i + j * 2 == i + j * 2
    assert hash(i + j * 2) == hash(i + j * 2)
    assert Axis("i", 8) + 1 != i + 1


def test_walk_goes_from_the_outside_in():
    assert [str(node) for node in walk(X[i + 1] + 3)] == ["(x[(i + 1)] + 3)", "x[(i + 1)]",
                                                          "(i + 1)", "i", "1", "3"]


@pytest.mark.parametrize(("made", "message"), [
    (lambda: X[i] + W[i], "x[i] + w[i]: the types are int8 and int32; cast one of them"),
    (lambda: X[i] + 200, "200 does not fit in int8"),
    (lambda: X[i] * 0.5, "0.5 is not a whole number, but the other side has type int8"),
    (lambda: X[i] + "1", "'1' is neither an expression nor a number"),
    (lambda: X[i] + True, "True is neither an expression nor a number"),
    (lambda: i // 0, "i // 0: nothing is divided by zero"),
    (lambda: Constant(4) % 0, "4 % 0: nothing is divided by zero"),
    (lambda: F[i] >> 1, "f[i] >> 1: both sides must be whole numbers, not float32"),
    (lambda: F[i] & 1, "f[i] & 1: both sides must be whole numbers, not float32"),
    (lambda: X[i] / 2, "x[i] / 2: both sides must be float16 or float32 or float64, not int8; //"),
    (lambda: (i < 3) + (j < 3), "(i < 3) + (j < 3): both sides must be numbers, not bool"),
    (lambda: (i < 3).equals(1), "1 is a number, but the other side has type bool"),
    (lambda: both(X[i], X[j]), "x[i] and x[j]: both sides must be bool, not int8"),
    (lambda: X[i].cast("int7"), "there is no type 'int7'; there are int8, uint8"),
    (lambda: select(i, 1, 2), "select: i is not a condition, such as i < 3"),
    (lambda: select(i < 3, X[i], W[i]), "x[i] or w[i]: the types are int8 and int32; cast"),
    (lambda: total(X[i], i), "i is not a reduce axis"),
    (lambda: total(X[k], k, k), "axis k is named twice"),
    (lambda: total(X[i]), "x[i]: name at least one axis to reduce over"),
    (lambda: largest(3, k), "3 is not an expression that has a sum or a maximum"),
    (lambda: bool(i < 3), "(i < 3) has no value yet; use `select`, `both` or `either`"),
    (lambda: Axis("i", 0), "axis i: extent is 0, but must be a whole number from 1 to"),
    (lambda: Axis("i", 4.0), "axis i: extent is 4.0, but must be a whole number"),
    (lambda: Axis("i", 10**20), "axis i: extent is 100000000000000000000, but must be a whole"),
    (lambda: as_expression(1.5), "1.5 is not a whole number, but the other side has type index"),
])
def test_what_makes_no_sense_is_refused(made, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        made()
