"""Functions of real numbers, against NumPy's in 64 bits, over all kinds of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microtron.compiler.cpu import functions
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import walk
from microtron.compiler.expression.tensor import compute, placeholder

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1.5, np.inf, -np.inf, np.nan, 1e30,
           -1e30)
TYPES = ("float32", "float64")


def of_each(function, *arrays):
    given = [placeholder(f"x{place}", array.shape, array.dtype.name)
             for place, array in enumerate(arrays)]
    result = compute("y", arrays[0].shape, lambda i: function(*(each[i] for each in given)))
    return evaluate(result, dict(zip(given, arrays, strict=True)))


def samples(dtype, seed=0, count=20_000):
    """Random bits, special numbers, and those that functions are mostly asked of."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    info = np.finfo(dtype)
    with np.errstate(over="ignore"):
        special = np.array([*SPECIAL, info.max, -info.max, info.tiny, info.smallest_subnormal],
                           dtype)
    return np.concatenate([
        rng.integers(0, 1 << 8 * bits.itemsize, count, dtype=bits).view(dtype), special,
        rng.normal(size=count).astype(dtype), rng.uniform(-1, 1, count).astype(dtype),
        rng.uniform(-110, 110, count).astype(dtype), rng.uniform(-750, 750, count).astype(dtype)])


def sigmoid(x):
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


erfc = np.vectorize(math.erfc, otypes=[np.float64])
# What each is, and by how many units in the last place it may differ in 32 and in 64 bits. (What
# NumPy itself is off by counts, too.)
FUNCTIONS = {
    functions.exp: (np.exp, 1, 1.5), functions.expm1: (np.expm1, 2, 2.5),
    functions.ln: (np.log, 1, 1.5), functions.log1p: (np.log1p, 3, 3),
    functions.tanh: (np.tanh, 3, 4), functions.sigmoid: (sigmoid, 3, 3),
    functions.softplus: (lambda x: np.logaddexp(0, x), 3, 4),
    functions.sinh: (np.sinh, 0.6, 4), functions.cosh: (np.cosh, 0.6, 4),
    functions.asinh: (np.arcsinh, 0.6, 4), functions.acosh: (np.arccosh, 0.6, 4),
    functions.atanh: (np.arctanh, 0.6, 4),
    functions.erf: (np.vectorize(math.erf, otypes=[np.float64]), 3, 3),
    functions.sin: (np.sin, 0.6, 3), functions.cos: (np.cos, 0.6, 3),
    functions.tan: (np.tan, 0.6, 5), functions.atan: (np.arctan, 0.6, 3),
    functions.asin: (np.arcsin, 0.6, 3), functions.acos: (np.arccos, 0.6, 3)}


def check(found, exact, units):
    """What is special is the same to the sign, everything else within some units."""
    expected = exact.astype(found.dtype)
    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_array_equal(found[special], expected[special])
    signed = special & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(expected[signed]))
    away = np.abs(found[~special].astype(np.float64) - exact[~special])
    assert np.max(away / np.spacing(np.abs(expected[~special])).astype(np.float64)) <= units


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_is_near_the_true_value(function, dtype):
    reference, single, double = FUNCTIONS[function]
    x = samples(dtype)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        check(of_each(function, x), exact, single if dtype == "float32" else double)


@pytest.mark.parametrize(("dtype", "units"), [("float32", 0.6), ("float64", 16)])
def test_powers(dtype, units):
    one, other = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    rng = np.random.default_rng(3)
    x = samples(dtype, 1)
    y = np.where(rng.random(x.size) < 0.3, np.round(rng.normal(size=x.size) * 5),
                 rng.permutation(x)).astype(dtype)
    x, y = np.concatenate([one.ravel(), x, np.abs(x)]), np.concatenate([other.ravel(), y, y])
    with np.errstate(all="ignore"):
        check(of_each(functions.power, x, y), np.power(x.astype(np.float64), y), units)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("function", "reference"), [
    (functions.remainder, np.fmod), (functions.modulo, np.mod)])
def test_remainders_are_exact(dtype, function, reference):
    one, other = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    x = samples(dtype, 1, 2000)
    y = np.random.default_rng(4).permutation(x)
    x, y = np.concatenate([one.ravel(), x]), np.concatenate([other.ravel(), y])
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64), y.astype(np.float64))
        check(of_each(function, x, y), exact, 0.5)


@pytest.mark.parametrize("dtype", TYPES)
def test_gelu_keeps_its_precision_where_little_is_left(dtype):
    x = np.linspace(-10, 10, 4001).astype(dtype)
    exact = x.astype(np.float64) * 0.5 * erfc(-x.astype(np.float64) / math.sqrt(2))
    near = 1e-5 if dtype == "float32" else 5e-14
    np.testing.assert_allclose(of_each(functions.gelu, x), exact, near, 0)


def test_half_precision_is_computed_in_32_bits():
    x = samples("float16", 5, 2000)
    with np.errstate(all="ignore"):
        check(of_each(functions.exp, x), np.exp(x.astype(np.float64)), 0.51)


@pytest.mark.parametrize("x", [
    1e22, 2.0 ** 1000, 6381956970095103.0 * 2.0 ** 797, np.finfo(np.float64).max, 355.0, 1e5])
def test_angles_of_any_size_are_exact(x):
    """The third is the number of 64 bits that is nearest to a multiple of π / 2."""
    values = np.array([x, -x])
    for function, reference in ((functions.sin, math.sin), (functions.cos, math.cos)):
        expected = [reference(each) for each in values]
        np.testing.assert_allclose(of_each(function, values), expected, 2e-15)


@pytest.mark.parametrize("function", [*FUNCTIONS, functions.gelu, functions.mish],
                         ids=lambda function: function.__name__)
def test_expressions_are_short(function):
    x = placeholder("x", (8,), "float32")
    assert sum(1 for _ in walk(function(x[0]))) < 250
