"""The error function: a series near 0, and e^(−x²) times a function that hardly changes beyond."""

from __future__ import annotations

from ...expression.expression import Expression, minimum, select
from ...expression.functions import copy_sign, magnitude
from . import coefficients
from .exponential import exp
from .reals import for_real_types, is_nan, polynomial


def _complement(x: Expression) -> tuple[Expression, Expression]:
    """1 − erf(x) of numbers that are not negative, and erf(x) of those up to 1."""
    single = x.dtype == "float32"
    square = x * x
    near = x * polynomial(square, coefficients.ERF32 if single else coefficients.ERF64)
    t = 2 / (x + 2)
    tail = exp(0 - square) * t * polynomial(
        t, coefficients.ERFC32 if single else coefficients.ERFC64)
    return select(x < 1, 1 - near, tail), near


@for_real_types
def erf(x: Expression) -> Expression:
    size = minimum(magnitude(x), 27)
    complement, near = _complement(size)
    return select(is_nan(x), x, copy_sign(select(size < 1, near, 1 - complement), x))


@for_real_types
def gelu(x: Expression) -> Expression:
    """x / 2 × (1 + erf(x / √2)), with what is left of it for negative numbers."""
    complement, _ = _complement(minimum(magnitude(x) * 0.5 ** 0.5, 40))
    share = select(x < 0, complement, 2 - complement)
    return select(is_nan(x), x, x * 0.5 * share)
