"""What is made of exponentials: sigmoid, hyperbolic functions and their inverses."""

from __future__ import annotations

from math import log

from ...expression.expression import Expression, maximum, minimum, select
from ...expression.functions import copy_sign, magnitude, square_root
from .exponential import exp, expm1, ln, log1p
from .reals import compute_in_double, for_real_types, is_nan


@for_real_types
def sigmoid(x: Expression) -> Expression:
    power = exp(0 - magnitude(x))
    return select(x < 0, power, 1) / (power + 1)


@for_real_types
def tanh(x: Expression) -> Expression:
    twice = expm1(minimum(magnitude(x), 30) * 2)
    return select(is_nan(x), x, copy_sign(twice / (twice + 2), x))


@for_real_types
def softplus(x: Expression) -> Expression:
    return maximum(x, 0) + log1p(exp(0 - magnitude(x)))


@for_real_types
def mish(x: Expression) -> Expression:
    """x × tanh(softplus(x)), where tanh(ln(1 + e)) = (e² + 2e) / (e² + 2e + 2)."""
    power = exp(minimum(x, 30))
    square = power * (power + 2)
    return x * (square / (square + 2))


@compute_in_double
def sinh(x: Expression) -> Expression:
    size = magnitude(x)
    small = expm1(minimum(size, 700))
    half = exp(size * 0.5)
    found = select(size < 700, (small + small / (small + 1)) * 0.5, half * 0.5 * half)
    return copy_sign(found, x)


@compute_in_double
def cosh(x: Expression) -> Expression:
    size = magnitude(x)
    small, half = exp(minimum(size, 700)), exp(size * 0.5)
    return select(size < 700, small * 0.5 + 0.5 / small, half * 0.5 * half)


LARGE = 2.0 ** 28           # beyond, √(x² ± 1) is x


@compute_in_double
def asinh(x: Expression) -> Expression:
    size = magnitude(x)
    near = minimum(size, LARGE)
    square = near * near
    small = log1p(near + square / (square_root(square + 1) + 1))
    return copy_sign(select(size <= LARGE, small, ln(size) + log(2)), x)


@compute_in_double
def acosh(x: Expression) -> Expression:
    away = minimum(x, LARGE) - 1
    near = log1p(away + square_root(away * 2 + away * away))
    return select(x < 1, float("nan"), select(x <= LARGE, near, ln(x) + log(2)))


@compute_in_double
def atanh(x: Expression) -> Expression:
    size = magnitude(x)
    return copy_sign(log1p(size * 2 / (1 - size)) * 0.5, x)
