"""Exponentials and logarithms. x = n × ln 2 + r, and 2^n is made of the bits of n."""

from __future__ import annotations

from math import factorial, inf

from ...expression.expression import Expression, as_expression, maximum, minimum, select
from ...expression.functions import as_bits, from_bits
from . import coefficients
from .reals import for_real_types, is_nan, polynomial


def _parts(x: Expression) -> tuple[Expression, Expression, Expression]:
    """n, r and e^r − 1, of numbers that are not far outside where e^x is finite and not 0. n is
    the low bits of an integer: its sum with a number so large that it has no fraction."""
    single = x.dtype == "float32"
    magic = coefficients.MAGIC[x.dtype]
    shifted = x * coefficients.LOG2_E + magic
    n = as_bits(shifted) - as_bits(as_expression(magic, x.dtype))
    high, low = coefficients.LN2[x.dtype]
    real_n = shifted - magic
    r = (x - real_n * high) - real_n * low
    series = coefficients.EXP32 if single else [1 / factorial(each) for each in range(14, 1, -1)]
    return n, r, r + r * r * polynomial(r, series)


def _power_of_two(n: Expression) -> Expression:
    """2^n for n whose power is a normal number."""
    bits, bias = (23, 127) if n.dtype == "int32" else (52, 1023)
    return from_bits((n + bias) << bits)


def _limit_exponent(x: Expression) -> Expression:
    """Numbers beyond which e^x is infinite or 0, no further than that is certain."""
    far = 120.0 if x.dtype == "float32" else 800.0
    return minimum(maximum(x, -far), far)


@for_real_types
def exp(x: Expression) -> Expression:
    n, _, rest = _parts(_limit_exponent(x))
    half = n >> 1               # twice, for 2^n need not be a normal number
    return (rest + 1) * _power_of_two(half) * _power_of_two(n - half)


@for_real_types
def expm1(x: Expression) -> Expression:
    """e^x − 1, which keeps its precision near 0."""
    n, _, rest = _parts(_limit_exponent(x))
    half = n >> 1
    small, power = maximum(minimum(n, 64), -64), _power_of_two(n - half)
    exact = _power_of_two(small)
    near = exact * rest + (exact - 1)
    far = (rest + 1) * _power_of_two(half) * power - 1
    return select(x.equals(0), x, select(n > 64, far, near))


def log_parts(x: Expression) -> tuple[Expression, Expression]:
    """n and m − 1 of positive finite numbers x = 2^n × m, with m from √½ to √2."""
    bits, more, least, root = ((23, 24, 2.0 ** -126, 0x3F3504F3) if x.dtype == "float32" else
                               (52, 54, 2.0 ** -1022, 0x3FE6A09E667F3BCD))
    denormal = x < least
    normal = as_bits(select(denormal, x * 2.0 ** more, x))
    n = (normal - root) >> bits
    m = from_bits(normal - (n << bits))
    return select(denormal, n - more, n).cast(x.dtype), m - 1


def _log_ends(x: Expression, inside: Expression) -> Expression:
    """Logarithms, also of what has none: of 0, infinity and negative numbers."""
    positive = select(x < inf, inside, x)           # what is no number stays so
    finite = select(x.equals(0), -inf, positive)
    return select(x < 0, float("nan"), finite)


@for_real_types
def ln(x: Expression) -> Expression:
    n, f = log_parts(x)
    if x.dtype == "float32":
        z = f * f
        y = f * z * polynomial(f, coefficients.LOG32)
        y = y + n * -2.12194440e-4 - z * 0.5
        return _log_ends(x, f + y + n * 0.693359375)
    high, low = coefficients.LN2["float64"]
    s = f / (f + 2)
    z = s * s
    rest, half = z * polynomial(z, coefficients.LOG64), f * f * 0.5
    return _log_ends(x, n * high - ((half - (s * (half + rest) + n * low)) - f))


@for_real_types
def log1p(x: Expression) -> Expression:
    """ln(1 + x), which keeps its precision near 0: what 1 + x loses is made up for (Kahan)."""
    u = x + 1
    away = u - 1
    ratio = x / select(away.equals(0), 1, away)
    found = select(away.equals(0), x, ln(u) * ratio)
    return select(x < inf, found, select(is_nan(x), x, inf))
