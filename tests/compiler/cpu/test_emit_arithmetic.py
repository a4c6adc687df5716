"""Operators, casts and functions on this processor, against what they mean in NumPy."""

from functools import partial

import numpy as np
import pytest
from hypothesis import settings

from microtron.compiler.expression.evaluate import evaluate, numpy_type
from microtron.compiler.expression.expression import (
    ARITHMETIC,
    COMPARISONS,
    TYPES,
    Call,
    Constant,
    Function,
    binary,
    both,
    either,
    maximum,
    minimum,
    negate,
    select,
)
from microtron.compiler.expression.functions import (
    as_bits,
    ceiling,
    copy_sign,
    floor,
    from_bits,
    fused_multiply_add,
    magnitude,
    round_half_even,
    square_root,
    truncate,
)
from microtron.compiler.expression.scalars import OF_FLOATS, OF_INTEGERS
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

from .machine import run

STORED = tuple(each for each in TYPES if each != "index")
NUMBERS = tuple(each for each in STORED if each != "bool")
FLOATS = ("float16", "float32", "float64")


def corners(dtype):
    """Numbers at the ends of a type, around zero, and some between."""
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype in FLOATS:
        limits = np.finfo(dtype)
        if dtype == "float16":
            return np.array([0.0, -0.0, 1.0, -2.5, 100.25, np.inf, -np.inf, np.nan, limits.max,
                             -limits.max, limits.tiny, limits.smallest_subnormal], dtype)
        return np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, 100.25, -7.0, 1e9,
                         -3e9, 3e18, np.inf, -np.inf, np.nan, limits.max, limits.tiny,
                         limits.smallest_subnormal], dtype)
    limits = np.iinfo(dtype)
    return np.unique(np.array([limits.min, limits.min + 1, limits.max, limits.max - 1,
                               *(each for each in (-7, -3, -1, 0, 1, 2, 5, 7, 31, 63, 100)
                                 if each >= limits.min)], dtype))


def pairs(dtype):
    one = corners(dtype)
    return np.repeat(one, len(one)), np.tile(one, len(one))


def widths(dtype):
    """One lane, and as many as a vector of the processor has; `make soak` tries all for all."""
    if not settings.default.derandomize:
        return (1, 4, 16)
    return (1, 4) if dtype.itemsize >= 4 else (1, 16)


def check(function, *arrays, lanes=None, exactly=True):
    """Compare a function of elements with its meaning: scalars, then vectors, tails included."""
    given = [placeholder(f"x{place}", each.shape, str(each.dtype))
             for place, each in enumerate(arrays)]
    y = compute("y", arrays[0].shape, lambda i: function(*(each[i] for each in given)))
    expected = evaluate(y, dict(zip(given, arrays, strict=True)))
    for width in widths(arrays[0].dtype) if lanes is None else (lanes,):
        schedule = Schedule(y)
        if width > 1:
            _, inner = schedule[y].split(schedule[y].leaves[0], width)
            schedule[y].vectorize(inner)
        nest = lower(schedule)
        values = {each.name: array for each, array in zip(given, arrays, strict=True)}
        status, found = run(nest, {each: values[each.name] for each in nest.inputs})
        assert status == 0
        np.testing.assert_array_equal(found[nest.outputs[0]], expected)


@pytest.mark.parametrize(("operator", "dtype"), [
    (operator, dtype) for operator in (*ARITHMETIC, *COMPARISONS) for dtype in NUMBERS
    if operator not in (OF_INTEGERS if dtype in FLOATS else OF_FLOATS)])
def test_operators(operator, dtype):
    check(lambda x, y: binary(operator, x, y), *pairs(dtype))


@pytest.mark.parametrize("operator", ["==", "!=", "and", "or"])
def test_conditions(operator):
    check(lambda x, y: binary(operator, x, y), *pairs("bool"))
    check(lambda x, y: either(both(x, y), negate(x)).cast("int8"), *pairs("bool"))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 100])
def test_division_by_constants(dtype, divisor):
    check(lambda x: x // divisor + x % divisor, corners(dtype))


@pytest.mark.parametrize("before", STORED)
@pytest.mark.parametrize("after", STORED)
def test_casts(before, after):
    check(lambda x: x.cast(after), corners(before))


def test_floats_beyond_integers_saturate_at_64_bits_and_nan_is_zero():
    values = np.array([np.inf, -np.inf, np.nan, 1e300, -1e19, 2.0 ** 63, -2.0 ** 63, -0.75])
    top = np.iinfo(np.int64).max
    expected = {"int64": [top, -top - 1, 0, top, -top - 1, top, -top - 1, 0],
                "uint64": [2 * top + 1, 0, 0, 2 * top + 1, 0, top + 1, 0, 0],
                "int32": [-1, 0, 0, -1, 0, -1, 0, 0]}
    x = placeholder("x", values.shape, "float64")
    for dtype, numbers in expected.items():
        y = compute("y", values.shape, partial(lambda dtype, i: x[i].cast(dtype), dtype))
        nest = lower(Schedule(y))
        _, found = run(nest, {nest.inputs[0]: values})
        assert found[nest.outputs[0]].tolist() == numbers
        assert evaluate(y, {x: values}).tolist() == numbers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clamped_floats_become_bytes(dtype):
    values = corners(dtype)
    values = values[~np.isnan(values)]
    check(lambda x: minimum(maximum(round_half_even(x), -128), 127).cast("int8"), values)
    check(lambda x: (round_half_even(minimum(maximum(x, -100), 100)) + 3).cast("int8"), values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [square_root, floor, ceiling, truncate, round_half_even,
                                      magnitude, as_bits, lambda x: from_bits(as_bits(x))])
def test_functions_of_one(function, dtype):
    values = corners(dtype)
    values = values[~np.isnan(values)]
    check(function, values[values >= 0] if function is square_root else values)


def test_functions_of_several():
    one, other = pairs("float32")
    with np.errstate(all="ignore"):
        keep = np.isfinite(one * other + one)
    check(copy_sign, one[~np.isnan(one)], other[~np.isnan(one)])
    check(lambda x, y: fused_multiply_add(x, y, x), one[keep], other[keep])


def test_selects():
    check(lambda x, y: select(x < y, x * y, x) + select(y < x, x, y), *pairs("int32"))


def test_what_a_definition_uses_twice_is_computed_once():
    def double(x):
        for _ in range(40):                 # 2^40 parts, if each were computed where it is used
            x = x + x
        return x
    many = Function("many", "int32", lambda x: x << 40, definition=double)
    check(lambda x: Call(many, (x,)), corners("int32"))


def test_a_function_with_a_definition_is_its_definition():
    square = Function("square", "float32", lambda x: x * x, definition=lambda x: x * x)
    values = corners("float32")
    with np.errstate(all="ignore"):
        check(lambda x: Call(square, (x + 1.0,)) - Constant(1.0, "float32"), values)


def test_indices_are_numbers_too():
    y = compute("y", (5, 7), lambda i, j: (i * 7 - j * 3).cast("float32") * 0.5)
    schedule = Schedule(y)
    schedule[y].vectorize(y.axes[1])
    nest = lower(schedule)
    np.testing.assert_array_equal(run(nest, {})[1][nest.outputs[0]], evaluate(y, {}))
    assert numpy_type("index") == np.int64
