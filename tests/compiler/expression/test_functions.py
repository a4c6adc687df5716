"""Functions that processors have instructions for, against Python's own."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import Axis, Constant, maximum, negate
from microtron.compiler.expression.functions import (
    as_bits,
    ceiling,
    check_index,
    copy_sign,
    floor,
    from_bits,
    fused_multiply_add,
    magnitude,
    round_half_even,
    square_root,
    truncate,
)
from microtron.compiler.expression.intervals import interval_of
from microtron.compiler.expression.tensor import compute, placeholder

i = Axis("i", 4)


def element_wise(function, *arrays):
    arrays = [np.asarray(each) for each in arrays]
    given = [placeholder(f"x{place}", each.shape, str(each.dtype))
             for place, each in enumerate(arrays)]
    result = compute("y", arrays[0].shape, lambda i: function(*(each[i] for each in given)))
    return evaluate(result, dict(zip(given, arrays, strict=True)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_one_float(dtype):
    x = np.array([2.5, 3.5, -0.5, 1e10, 0.0, -2.7, np.inf], dtype)
    for function, means in ((floor, np.floor), (ceiling, np.ceil), (truncate, np.trunc),
                            (round_half_even, np.rint), (magnitude, np.abs),
                            (square_root, np.sqrt)):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(element_wise(function, x), means(x))
    np.testing.assert_array_equal(element_wise(lambda x: from_bits(as_bits(x)), x), x)


def test_bits_and_signs():
    x = np.array([1.0, -0.0], np.float32)
    assert element_wise(as_bits, x).tolist() == [0x3F800000, -(1 << 31)]
    assert element_wise(lambda x: copy_sign(x, -1.0), np.float64([2.0])).tolist() == [-2.0]


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)


@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=8))
def test_a_multiply_add_of_singles_is_rounded_once(rows):
    x, y, z = np.array(rows, np.float32).T.copy()
    result = element_wise(fused_multiply_add, x, y, z)
    for one, other, more, found in zip(x, y, z, result, strict=True):
        exact = Fraction(float(one)) * Fraction(float(other)) + Fraction(float(more))
        if math.isfinite(found):
            with np.errstate(over="ignore"):
                neighbours = np.nextafter(found, np.float32([-np.inf, np.inf]))
            around = [Fraction(float(each)) for each in neighbours if math.isfinite(each)]
            assert all(abs(exact - Fraction(float(found))) <= abs(exact - each) for each in around)


def test_a_multiply_add_of_doubles_keeps_what_the_product_would_lose():
    x = np.array([1 + 2.0 ** -30])
    assert element_wise(lambda x: fused_multiply_add(x, x, Constant(-1.0, "float64")),
                        x).tolist() == [2.0 ** -29 + 2.0 ** -60]


def test_a_checked_index_is_inside_and_data_has_the_range_of_its_type():
    indices = placeholder("indices", (4,), "int32")
    index = indices[i].cast("index")
    assert interval_of(check_index(index, 7), {}) == (0, 6)
    assert interval_of(maximum(index, 3), {}) == (3, (1 << 31) - 1)
    x = placeholder("x", (7,), "float32")
    y = compute("y", (4,), lambda i: x[check_index(indices[i].cast("index"), 7)])
    assert evaluate(y, {indices: np.array([0, 6, -1, 9], np.int32),
                        x: np.arange(7, dtype=np.float32)}).tolist() == [0, 6, 0, 6]


def test_a_negated_condition():
    y = compute("y", (3,), lambda i: negate(i < 1).cast("int8"))
    assert evaluate(y, {}).tolist() == [0, 1, 1]


@pytest.mark.parametrize(("made", "message"), [
    (lambda: floor(i), "floor(i): the type is index, but must be float16 or float32 or float64"),
    (lambda: copy_sign(Constant(1.0, "float32"), Constant(1.0, "float64")),
     "copysign: the types are float32 and float64; cast one of them"),
    (lambda: as_bits(i), "as_bits(i): index is not one of float16, float32, float64"),
    (lambda: from_bits(Constant(1, "int8")),
     "from_bits(1): int8 is not one of int16, int32, int64"),
    (lambda: check_index(Constant(1, "int8"), 3),
     "checked(1): the type is int8, but must be index"),
])
def test_what_makes_no_sense_is_refused(made, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        made()
