"""What tensor expressions mean, against plain NumPy."""

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
    Call,
    Constant,
    Function,
    Reduction,
    binary,
    both,
    either,
    largest,
    maximum,
    minimum,
    select,
    total,
)
from microtron.compiler.expression.scalars import FLOATS, INTEGERS, OF_FLOATS, OF_INTEGERS
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.isa.arithmetic import requantize, requantize_array

RNG = np.random.default_rng(1)


def numbers(shape, dtype):
    """Random numbers of the whole range."""
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def element_wise(function, *arrays):
    """What a function of scalars gives for arrays of one dimension."""
    tensors = [placeholder(f"x{number}", array.shape, str(array.dtype))
               for number, array in enumerate(arrays)]
    result = compute("y", arrays[0].shape, lambda i: function(*(tensor[i] for tensor in tensors)))
    return evaluate(result, dict(zip(tensors, arrays, strict=True)))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 20))
def test_a_matmul_is_numpys(rows, columns, depth):
    x, w = placeholder("x", (rows, depth), "int8"), placeholder("w", (columns, depth), "int8")
    k = reduce_axis("k", depth)
    y = compute("y", (rows, columns), lambda i, j: total(
        x[i, k].cast("int32") * w[j, k].cast("int32"), k))
    a, b = numbers(x.shape, "int8"), numbers(w.shape, "int8")
    result = evaluate(y, {x: a, w: b})
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32).T)


def padded(x, pad, value):
    channels, height, width = x.shape
    return compute("padded", (channels, height + 2 * pad, width + 2 * pad), lambda c, h, w: select(
        both(h >= pad, h < height + pad, w >= pad, w < width + pad), x[c, h - pad, w - pad], value))


def windows(x, kernel, stride, dilation):
    """Every window of a padded image, by plain loops: channel, row, column, then the kernel."""
    reach = (kernel - 1) * dilation + 1
    rows, columns = ((extent - reach) // stride + 1 for extent in x.shape[1:])
    result = np.empty((x.shape[0], rows, columns, kernel, kernel), x.dtype)
    for row in range(rows):
        for column in range(columns):
            down, right = row * stride, column * stride
            result[:, row, column] = x[:, down:down + reach:dilation, right:right + reach:dilation]
    return result


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 3),
                   st.integers(0, 2)).filter(lambda each: (each[0] - 1) * each[2] < 6 + 2 * each[3])


@given(SHAPES)
def test_a_convolution_with_padding_stride_and_dilation_is_numpys(shape):
    kernel, stride, dilation, pad = shape
    x, w = placeholder("x", (3, 7, 6), "int8"), placeholder("w", (4, 3, kernel, kernel), "int8")
    c, r, s = reduce_axis("c", 3), reduce_axis("r", kernel), reduce_axis("s", kernel)
    source = padded(x, pad, 5)
    a, b = numbers(x.shape, "int8"), numbers(w.shape, "int8")
    every = windows(np.pad(a, ((0, 0), (pad, pad), (pad, pad)), constant_values=5),
                    kernel, stride, dilation).astype(np.int32)
    y = compute("y", (4, *every.shape[1:3]), lambda o, i, j: total(
        source[c, i * stride + r * dilation, j * stride + s * dilation].cast("int32")
        * w[o, c, r, s].cast("int32"), c, r, s))
    np.testing.assert_array_equal(evaluate(y, {x: a, w: b}),
                                  np.einsum("chwrs,ocrs->ohw", every, b.astype(np.int32)))


def test_a_depthwise_convolution_is_numpys():
    x, w = placeholder("x", (3, 7, 6), "int8"), placeholder("w", (3, 3, 3), "int8")
    r, s = reduce_axis("r", 3), reduce_axis("s", 3)
    y = compute("y", (3, 5, 4), lambda c, i, j: total(
        x[c, i + r, j + s].cast("int32") * w[c, r, s].cast("int32"), r, s))
    a, b = numbers(x.shape, "int8"), numbers(w.shape, "int8")
    np.testing.assert_array_equal(evaluate(y, {x: a, w: b}), np.einsum(
        "chwrs,crs->chw", windows(a, 3, 1, 1).astype(np.int32), b.astype(np.int32)))


def test_a_max_pool_never_takes_the_padding_of_minus_128():
    x = placeholder("x", (3, 7, 6), "int8")
    r, s = reduce_axis("r", 3), reduce_axis("s", 3)
    source = padded(x, 1, -128)
    y = compute("y", (3, 4, 3), lambda c, i, j: largest(source[c, i * 2 + r, j * 2 + s], r, s))
    a = numbers(x.shape, "int8")
    around = np.pad(a, ((0, 0), (1, 1), (1, 1)), constant_values=-128)
    result = evaluate(y, {x: a})
    assert result.dtype == np.int8
    np.testing.assert_array_equal(result, windows(around, 3, 2, 1).max((3, 4)))


def test_a_minimum_is_a_reduction_too():
    x, k = placeholder("x", (4, 9), "int16"), reduce_axis("k", 9)
    y = compute("y", (4,), lambda i: Reduction("min", x[i, k], (k,)))
    a = numbers(x.shape, "int16")
    np.testing.assert_array_equal(evaluate(y, {x: a}), a.min(1))


def test_a_requantization_is_the_instruction_sets():
    function = Function("requantize", "int8", lambda *each: requantize_array(*each, zero_point=3))
    acc, bias = placeholder("acc", (40, 8), "int32"), placeholder("bias", (8,), "int32")
    multiplier, shift = placeholder("m", (8,), "int32"), placeholder("s", (8,), "int32")
    y = compute("y", (40, 8), lambda i, o: Call(function, (acc[i, o], bias[o], multiplier[o],
                                                           shift[o])))
    given = {acc: numbers((40, 8), "int32") >> 8, bias: numbers(8, "int32") >> 8,
             multiplier: numbers(8, "int32"), shift: np.arange(35, 43, dtype=np.int32)}
    a, b, m, s = (given[each].tolist() for each in (acc, bias, multiplier, shift))
    assert evaluate(y, given).tolist() == [
        [requantize(row[o], b[o], m[o], s[o], zero_point=3) for o in range(8)] for row in a]


@given(st.lists(st.tuples(st.integers(-2**31, 2**31 - 1), st.integers(-2**31, 2**31 - 1)),
                min_size=1), st.sampled_from(["+", "-", "*"]))
def test_32_bit_integers_wrap(pairs, operator):
    a, b = (np.array(each, np.int32) for each in zip(*pairs, strict=True))
    exact = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[operator]
    assert element_wise(lambda x, y: binary(operator, x, y), a, b).tolist() == [
        (exact(left, right) + 2**31) % 2**32 - 2**31 for left, right in pairs]


def test_sums_wrap_in_their_own_type():
    x, k = placeholder("x", (3,), "int8"), reduce_axis("k", 3)
    y = compute("y", (1,), lambda i: total(x[i + k], k))
    assert evaluate(y, {x: np.array([100, 100, 100], np.int8)}).tolist() == [300 - 256]


def test_constants_wrap_like_everything_else():
    y = compute("y", (2,), lambda i: Constant(100, "int8") + Constant(100, "int8"))
    assert evaluate(y, {}).tolist() == [-56, -56]


@given(st.lists(st.integers(-2**31, 2**31 - 1), min_size=1))
def test_a_cast_to_8_bits_loses_the_high_bits(values):
    a = np.array(values, np.int32)
    assert element_wise(lambda x: x.cast("int8"), a).tolist() == [
        (value + 128) % 256 - 128 for value in values]
    assert element_wise(lambda x: x.cast("uint8"), a).tolist() == [value % 256 for value in values]


def test_a_cast_of_a_float_cuts_its_fraction_off():
    a = np.array([2.7, -2.7, 0.0, -0.5], np.float32)
    assert element_wise(lambda x: x.cast("int32"), a).tolist() == [2, -2, 0, 0]


def test_casts_between_integers_floats_and_indices_keep_values():
    y = compute("y", (4,), lambda i: (i * 3 - 2).cast("float32") * 0.5)
    assert evaluate(y, {}).tolist() == [-1.0, 0.5, 2.0, 3.5]


@pytest.mark.parametrize(("operator", "dtype"), [
    (operator, dtype) for operator in sorted(set(ARITHMETIC) - {">>", "<<"})
    for dtype in (*INTEGERS, *FLOATS)
    if operator not in (OF_FLOATS if "int" in dtype else OF_INTEGERS)])
def test_arithmetic_keeps_the_type(operator, dtype):
    a, b = (np.array(each, dtype) for each in ([1, 7, 100, 127], [3, 2, 100, 5]))
    with np.errstate(over="ignore"):
        expected = ARITHMETIC[operator](a, b)
    result = element_wise(lambda x, y: binary(operator, x, y), a, b)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


def test_division_and_remainder_round_down_and_shifts_keep_the_sign():
    a = np.array([-7, 7], np.int32)
    assert element_wise(lambda x: x // 2, a).tolist() == [-4, 3]
    assert element_wise(lambda x: x % 4, a).tolist() == [1, 3]
    assert element_wise(lambda x: x >> 1, a).tolist() == [-4, 3]
    assert element_wise(lambda x: x << 30, a).tolist() == [1 << 30, -(1 << 30)]


def test_conditions_choose():
    a, b = np.array([1, 2, 3, 4], np.int8), np.array([4, 2, 1, 5], np.int8)
    assert element_wise(lambda x, y: select(x < y, x, y), a, b).tolist() == [1, 2, 1, 4]
    assert element_wise(lambda x, y: select(either(x.equals(y), x <= 1), x, 0),
                        a, b).tolist() == [1, 2, 0, 0]
    assert element_wise(lambda x, y: select(both(x <= y, x >= 2), maximum(x, y), minimum(x, y)),
                        a, b).tolist() == [1, 2, 1, 5]


def test_what_a_select_does_not_choose_may_divide_by_zero():
    a = np.array([0, 2, 4], np.int32)
    assert element_wise(lambda x: select(x.equals(0), 0, Constant(100, "int32") // x),
                        a).tolist() == [0, 50, 25]


def test_a_tensor_without_dimensions_is_a_number():
    x, k = placeholder("x", (5,), "int32"), reduce_axis("k", 5)
    y = compute("y", (), lambda: total(x[k], k))
    z = compute("z", (2,), lambda i: y[()] + i.cast("int32"))
    assert evaluate(y, {x: np.arange(5, dtype=np.int32)}).shape == ()
    assert evaluate(z, {x: np.arange(5, dtype=np.int32)}).tolist() == [10, 11]


def test_a_result_can_be_written_to():
    x = placeholder("x", (2,), "int8")
    y = compute("y", (3, 2), lambda i, j: x[j])
    result = evaluate(y, {x: np.array([1, 2], np.int8)})
    result[0, 0] = 9
    assert result.tolist() == [[9, 2], [1, 2], [1, 2]]


@pytest.mark.parametrize(("array", "message"), [
    (None, "x is not given"),
    (np.zeros(3, np.int8), "x is int8 of shape (2,), but int8 of shape (3,) is given"),
    (np.zeros(2, np.int16), "x is int8 of shape (2,), but int16 of shape (2,) is given"),
])
def test_an_input_that_does_not_fit_is_refused(array, message):
    x = placeholder("x", (2,), "int8")
    y = compute("y", (2,), lambda i: x[i])
    with pytest.raises(CompileError, match=re.escape(message)):
        evaluate(y, {} if array is None else {x: array})
