"""Powers and remainders."""

from __future__ import annotations

from math import inf

from ...expression.expression import (
    Constant,
    Expression,
    as_expression,
    binary,
    both,
    either,
    maximum,
    minimum,
    select,
)
from ...expression.functions import as_bits, copy_sign, from_bits, magnitude, truncate
from . import coefficients
from .exponential import exp, log_parts
from .reals import Function, is_nan, polynomial


def constant_power(x: Expression, exponent: float) -> Expression:
    """x to a power that is known, the common ones without logarithms."""
    simple: dict[float, Function] = {
        1.0: lambda x: x, 2.0: lambda x: x * x, 3.0: lambda x: x * x * x, -1.0: lambda x: 1 / x,
        0.0: lambda x: as_expression(1, x.dtype)}
    if exponent in simple:
        return simple[exponent](x)
    return power(x, as_expression(exponent, x.dtype))


def power(x: Expression, y: Expression) -> Expression:
    """x^y, computed in 64 bits: e^(y × ln x), where ln x has about 80 bits."""
    dtype = x.dtype
    x, y = x.cast("float64"), y.cast("float64")
    size = magnitude(x)
    found = _real_power(size, y)
    whole = truncate(y).equals(y)
    half = y * 0.5
    odd = both(whole, binary("!=", truncate(half), half))
    negative = either(x < 0, both(x.equals(0), 1 / x < 0))
    found = select(both(negative, odd), found * -1, found)
    real = either(whole, either(magnitude(y).equals(inf), size.equals(inf)))
    found = select(both(both(x < 0, real.equals(Constant(False, "bool"))), size < inf),
                   float("nan"), found)
    found = select(either(is_nan(x), is_nan(y)), x + y, found)
    return select(either(y.equals(0), x.equals(1)), 1, found).cast(dtype)


def _split(x: Expression) -> tuple[Expression, Expression]:
    """A number as two of 26 bits, of which products are exact."""
    high = from_bits(as_bits(x) & -(1 << 27))
    return high, x - high


def _real_power(x: Expression, y: Expression) -> Expression:
    """x^y of numbers that are not negative. The logarithm is a sum of two numbers."""
    n, f = log_parts(x)
    over = f + 2
    s = f / over
    s_high, _ = _split(s)
    over_high, over_low = _split(over)
    lost = f - (over - 2)
    s_low = ((f - s_high * over_high) - s_high * (over_low + lost)) / over  # f / over − s_high
    z = s * s
    rest = s * z * polynomial(z, coefficients.LOG64)                   # ln m = 2 s + rest
    ln_high, ln_low = coefficients.LN2["float64"]
    big = n * ln_high
    high = big + s_high * 2
    low = (big - high) + s_high * 2 + (s_low * 2 + (rest + n * ln_low))
    total = high + low
    total_low = (high - total) + low
    bounded = minimum(maximum(y, -1e300), 1e300)
    (y_high, y_low), (t_high, t_low) = _split(bounded), _split(total)
    product = total * bounded
    error = (t_high * y_high - product) + t_high * y_low + t_low * y_high + t_low * y_low + (
        total_low * bounded)
    inside = magnitude(product) < 1000
    value = exp(select(inside, product, copy_sign(as_expression(1000, product.dtype), product)))
    value = select(both(inside, value < inf), value + value * error, value)
    # What has no logarithm: 0 and infinity; and 1, whose powers are 1.
    growing = select(x < 1, y < 0, y > 0)
    ends = select(growing, as_expression(inf, "float64"), 0)
    odd = either(either(x.equals(0), x.equals(inf)), magnitude(y).equals(inf))
    return select(x.equals(1), 1, select(odd, ends, value))


STEP = 28                   # bits of a quotient that one step of a division of 32 bits takes


def remainder(x: Expression, y: Expression) -> Expression:
    """What is left of x after multiples of y, with the sign of x. Exact."""
    if x.dtype != "float64":
        return _remainder(x.cast("float64"), y.cast("float64"), STEP, 10).cast(x.dtype)
    return _remainder(x, y, 24, 88)


def modulo(x: Expression, y: Expression) -> Expression:
    """The same with the sign of y."""
    rest = remainder(x, y)
    other = both(binary("!=", rest, as_expression(0, rest.dtype)),
                 binary("!=", rest < 0, y < 0))
    return select(other, rest + y, select(rest.equals(0), copy_sign(rest, y), rest))


def _remainder(x: Expression, y: Expression, bits: int, steps: int) -> Expression:
    """A long division: each step subtracts as many of y × 2^k as there are, k getting less."""
    rest, divisor = magnitude(x), magnitude(y)
    for step in reversed(range(steps)):
        scaled = divisor
        for more in range(0, bits * step, 1000):        # no number is larger than 2^1024
            scaled = scaled * 2.0 ** min(bits * step - more, 1000)
        count = truncate(rest / scaled)
        high, low = _split(scaled)
        less = (rest - count * high) - count * low
        less = select(less < 0, less + scaled, less)
        rest = select(rest < scaled, rest, less)
    finite = both(magnitude(x) < inf, binary("!=", y, as_expression(0, y.dtype)))
    found = select(magnitude(y) < inf, copy_sign(rest, x), x)
    return select(both(finite, y.equals(y)), found, float("nan"))
