"""Functions of real numbers as expressions of what every processor has: no library is called, and
whatever computes expressions, one number or many at a time, computes these.

Arguments are brought into a small range, where a polynomial is near enough, and results back. Those
of 32 bits are within a few units in the last place, of 64 bits as well; infinities, zeros with
their sign, denormal numbers and what is no number give what IEEE 754 says. Half precision is
computed in 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import factorial, inf, log, pi

from ..expression.expression import (
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
from ..expression.functions import (
    as_bits,
    from_bits,
    magnitude,
    nearest_even,
    square_root,
    truncated,
    with_sign_of,
)
from . import function_constants as constants

Function = Callable[[Expression], Expression]


def _of_reals(function: Function) -> Function:
    """A function of any real type, from one of 32 and 64 bits."""
    @wraps(function)
    def wrapped(x: Expression) -> Expression:
        return function(x.cast("float32")).cast("float16") if x.dtype == "float16" else function(x)
    return wrapped


def _in_double(function: Function) -> Function:
    """A function of any real type, computed in 64 bits."""
    @wraps(function)
    def wrapped(x: Expression) -> Expression:
        return function(x.cast("float64")).cast(x.dtype)
    return wrapped


def polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """Coefficients begin with that of the highest power."""
    total = as_expression(coefficients[0], x.dtype)
    for each in coefficients[1:]:
        total = total * x + each
    return total


def unordered(x: Expression) -> Expression:
    """Whether a number is none."""
    return binary("!=", x, x)


# Exponentials. x = n × ln 2 + r, and 2^n is made of the bits of n.

def _parts(x: Expression) -> tuple[Expression, Expression, Expression]:
    """n, r and e^r − 1, of numbers that are not far outside where e^x is finite and not 0. n is
    the low bits of an integer: its sum with a number so large that it has no fraction."""
    single = x.dtype == "float32"
    magic = constants.MAGIC[x.dtype]
    shifted = x * constants.LOG2_E + magic
    n = as_bits(shifted) - as_bits(as_expression(magic, x.dtype))
    high, low = constants.LN2[x.dtype]
    real_n = shifted - magic
    r = (x - real_n * high) - real_n * low
    series = constants.EXP32 if single else [1 / factorial(each) for each in range(14, 1, -1)]
    return n, r, r + r * r * polynomial(r, series)


def _power_of_two(n: Expression) -> Expression:
    """2^n for n whose power is a normal number."""
    bits, bias = (23, 127) if n.dtype == "int32" else (52, 1023)
    return from_bits((n + bias) << bits)


def _limited(x: Expression) -> Expression:
    """Numbers beyond which e^x is infinite or 0, no further than that is certain."""
    far = 120.0 if x.dtype == "float32" else 800.0
    return minimum(maximum(x, -far), far)


@_of_reals
def exp(x: Expression) -> Expression:
    n, _, rest = _parts(_limited(x))
    half = n >> 1               # twice, for 2^n need not be a normal number
    return (rest + 1) * _power_of_two(half) * _power_of_two(n - half)


@_of_reals
def expm1(x: Expression) -> Expression:
    """e^x − 1, which keeps its precision near 0."""
    n, _, rest = _parts(_limited(x))
    half = n >> 1
    small, power = maximum(minimum(n, 64), -64), _power_of_two(n - half)
    exact = _power_of_two(small)
    near = exact * rest + (exact - 1)
    far = (rest + 1) * _power_of_two(half) * power - 1
    return select(x.equals(0), x, select(n > 64, far, near))


def _log_parts(x: Expression) -> tuple[Expression, Expression]:
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


@_of_reals
def ln(x: Expression) -> Expression:
    n, f = _log_parts(x)
    if x.dtype == "float32":
        z = f * f
        y = f * z * polynomial(f, constants.LOG32)
        y = y + n * -2.12194440e-4 - z * 0.5
        return _log_ends(x, f + y + n * 0.693359375)
    high, low = constants.LN2["float64"]
    s = f / (f + 2)
    z = s * s
    rest, half = z * polynomial(z, constants.LOG64), f * f * 0.5
    return _log_ends(x, n * high - ((half - (s * (half + rest) + n * low)) - f))


@_of_reals
def log1p(x: Expression) -> Expression:
    """ln(1 + x), which keeps its precision near 0: what 1 + x loses is made up for (Kahan)."""
    u = x + 1
    away = u - 1
    ratio = x / select(away.equals(0), 1, away)
    found = select(away.equals(0), x, ln(u) * ratio)
    return select(x < inf, found, select(unordered(x), x, inf))


# What is made of exponentials.

@_of_reals
def sigmoid(x: Expression) -> Expression:
    power = exp(0 - magnitude(x))
    return select(x < 0, power, 1) / (power + 1)


@_of_reals
def tanh(x: Expression) -> Expression:
    twice = expm1(minimum(magnitude(x), 30) * 2)
    return select(unordered(x), x, with_sign_of(twice / (twice + 2), x))


@_of_reals
def softplus(x: Expression) -> Expression:
    return maximum(x, 0) + log1p(exp(0 - magnitude(x)))


@_of_reals
def mish(x: Expression) -> Expression:
    """x × tanh(softplus(x)), where tanh(ln(1 + e)) = (e² + 2e) / (e² + 2e + 2)."""
    power = exp(minimum(x, 30))
    square = power * (power + 2)
    return x * (square / (square + 2))


@_in_double
def sinh(x: Expression) -> Expression:
    size = magnitude(x)
    small = expm1(minimum(size, 700))
    half = exp(size * 0.5)
    found = select(size < 700, (small + small / (small + 1)) * 0.5, half * 0.5 * half)
    return with_sign_of(found, x)


@_in_double
def cosh(x: Expression) -> Expression:
    size = magnitude(x)
    small, half = exp(minimum(size, 700)), exp(size * 0.5)
    return select(size < 700, small * 0.5 + 0.5 / small, half * 0.5 * half)


LARGE = 2.0 ** 28           # beyond, √(x² ± 1) is x


@_in_double
def asinh(x: Expression) -> Expression:
    size = magnitude(x)
    near = minimum(size, LARGE)
    square = near * near
    small = log1p(near + square / (square_root(square + 1) + 1))
    return with_sign_of(select(size <= LARGE, small, ln(size) + log(2)), x)


@_in_double
def acosh(x: Expression) -> Expression:
    away = minimum(x, LARGE) - 1
    near = log1p(away + square_root(away * 2 + away * away))
    return select(x < 1, float("nan"), select(x <= LARGE, near, ln(x) + log(2)))


@_in_double
def atanh(x: Expression) -> Expression:
    size = magnitude(x)
    return with_sign_of(log1p(size * 2 / (1 - size)) * 0.5, x)


# The error function: a series near 0, and e^(−x²) times a function that hardly changes beyond.

def _complement(x: Expression) -> tuple[Expression, Expression]:
    """1 − erf(x) of numbers that are not negative, and erf(x) of those up to 1."""
    single = x.dtype == "float32"
    square = x * x
    near = x * polynomial(square, constants.ERF32 if single else constants.ERF64)
    t = 2 / (x + 2)
    tail = exp(0 - square) * t * polynomial(
        t, constants.ERFC32 if single else constants.ERFC64)
    return select(x < 1, 1 - near, tail), near


@_of_reals
def erf(x: Expression) -> Expression:
    size = minimum(magnitude(x), 27)
    complement, near = _complement(size)
    return select(unordered(x), x, with_sign_of(select(size < 1, near, 1 - complement), x))


@_of_reals
def gelu(x: Expression) -> Expression:
    """x / 2 × (1 + erf(x / √2)), with what is left of it for negative numbers."""
    complement, _ = _complement(minimum(magnitude(x) * 0.5 ** 0.5, 40))
    share = select(x < 0, complement, 2 - complement)
    return select(unordered(x), x, x * 0.5 * share)


# Circular functions. A number of turns is x / 2π, of which only the fraction counts: the whole
# number m of x = m × 2^e is multiplied with the fraction of 2^e / 2π, which is in a table.

def _turned(x: Expression) -> tuple[Expression, Expression]:
    """The quarter that an angle lies in, and by how much it differs from the middle of that."""
    bits = as_bits(magnitude(x))
    exponent = (bits >> 52) - constants.FIRST_EXPONENT
    whole = (bits & ((1 << 52) - 1)) | (1 << 52)
    parts = ((whole >> 27).cast("float64"), constants.HALF_OF_BITS), (
        (whole & ((1 << 27) - 1)).cast("float64"), 0)
    fractions = []
    for piece in range(constants.PIECES):
        terms = [value * constants.turn(exponent, further, piece) for value, further in parts]
        if piece < 2:           # they are exact, and so is what is left of them
            terms = [each - nearest_even(each) for each in terms]
        fractions.append(terms[0] + terms[1])
    turns = fractions[0] + fractions[1]
    quarter = nearest_even(turns * 4)
    rest = turns - quarter * 0.25
    for fraction in fractions[2:]:          # the larger first: where they cancel, nothing is lost
        rest = rest + fraction
    small = magnitude(x) < 0.5
    sign = with_sign_of(as_expression(1, x.dtype), x)
    angle = sign * rest * (2 * pi)
    number = sign * quarter
    kept = select(both(magnitude(x) < inf, magnitude(x) >= 0.5), number, 0)
    return kept.cast("int64") & 3, select(small, x, angle)


def _sine(r: Expression) -> Expression:
    square = r * r
    return r + r * square * polynomial(
        square, [(-1) ** each / factorial(2 * each + 1) for each in range(8, 0, -1)])


def _cosine(r: Expression) -> Expression:
    square = r * r
    return 1 - square * 0.5 + square * square * polynomial(
        square, [(-1) ** each / factorial(2 * each) for each in range(8, 1, -1)])


def _finite(x: Expression, value: Expression) -> Expression:
    """There is no angle of infinity."""
    return select(magnitude(x) < inf, value, float("nan"))


@_in_double
def sin(x: Expression) -> Expression:
    quarter, r = _turned(x)
    found = select((quarter & 1).equals(1), _cosine(r), _sine(r))
    return _finite(x, select(x.equals(0), x, select(quarter >= 2, found * -1, found)))


@_in_double
def cos(x: Expression) -> Expression:
    quarter, r = _turned(x)
    found = select((quarter & 1).equals(1), _sine(r), _cosine(r))
    negative = either(quarter.equals(1), quarter.equals(2))
    return _finite(x, select(negative, found * -1, found))


@_in_double
def tan(x: Expression) -> Expression:
    quarter, r = _turned(x)
    sine, cosine = _sine(r), _cosine(r)
    found = select((quarter & 1).equals(1), cosine / sine * -1, sine / cosine)
    return _finite(x, select(x.equals(0), x, found))


@_in_double
def atan(x: Expression) -> Expression:
    size = magnitude(x)
    inverse = select(size > 1, 1 / size, size)
    far = inverse > 2 ** 0.5 - 1
    t = select(far, (inverse - 1) / (inverse + 1), inverse)
    square = t * t
    found = t - t * square * polynomial(square, constants.ATAN)
    found = select(far, found + pi / 4, found)
    return with_sign_of(select(size > 1, pi / 2 - found, found), x)


def _asin_rest(square: Expression) -> Expression:
    """asin(x) / x − 1 of numbers up to 1/2."""
    return square * polynomial(square, constants.ASIN) / polynomial(square, constants.ASIN_OVER)


def _asin_part(x: Expression) -> tuple[Expression, Expression]:
    """Whether a number is nearer to ±1 than to 0, and the asin of its magnitude or, if so, half
    the acos."""
    size = magnitude(x)
    far = size > 0.5
    square = select(far, (1 - size) * 0.5, size * size)
    root = select(far, square_root(square), size)
    return far, root + root * _asin_rest(square)


@_in_double
def asin(x: Expression) -> Expression:
    far, found = _asin_part(x)
    return with_sign_of(select(far, pi / 2 - found * 2, found), x)


@_in_double
def acos(x: Expression) -> Expression:
    far, found = _asin_part(x)
    near = pi / 2 - with_sign_of(found, x)
    return select(far, select(x < 0, pi - found * 2, found * 2), near)


# Powers and remainders.

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
    whole = truncated(y).equals(y)
    half = y * 0.5
    odd = both(whole, binary("!=", truncated(half), half))
    negative = either(x < 0, both(x.equals(0), 1 / x < 0))
    found = select(both(negative, odd), found * -1, found)
    real = either(whole, either(magnitude(y).equals(inf), size.equals(inf)))
    found = select(both(both(x < 0, real.equals(Constant(False, "bool"))), size < inf),
                   float("nan"), found)
    found = select(either(unordered(x), unordered(y)), x + y, found)
    return select(either(y.equals(0), x.equals(1)), 1, found).cast(dtype)


def _split(x: Expression) -> tuple[Expression, Expression]:
    """A number as two of 26 bits, of which products are exact."""
    high = from_bits(as_bits(x) & -(1 << 27))
    return high, x - high


def _real_power(x: Expression, y: Expression) -> Expression:
    """x^y of numbers that are not negative. The logarithm is a sum of two numbers."""
    n, f = _log_parts(x)
    over = f + 2
    s = f / over
    s_high, _ = _split(s)
    over_high, over_low = _split(over)
    lost = f - (over - 2)
    s_low = ((f - s_high * over_high) - s_high * (over_low + lost)) / over  # f / over − s_high
    z = s * s
    rest = s * z * polynomial(z, constants.LOG64)                   # ln m = 2 s + rest
    ln_high, ln_low = constants.LN2["float64"]
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
    value = exp(select(inside, product, with_sign_of(as_expression(1000, product.dtype), product)))
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
    return select(other, rest + y, select(rest.equals(0), with_sign_of(rest, y), rest))


def _remainder(x: Expression, y: Expression, bits: int, steps: int) -> Expression:
    """A long division: each step subtracts as many of y × 2^k as there are, k getting less."""
    rest, divisor = magnitude(x), magnitude(y)
    for step in reversed(range(steps)):
        scaled = divisor
        for more in range(0, bits * step, 1000):        # no number is larger than 2^1024
            scaled = scaled * 2.0 ** min(bits * step - more, 1000)
        count = truncated(rest / scaled)
        high, low = _split(scaled)
        less = (rest - count * high) - count * low
        less = select(less < 0, less + scaled, less)
        rest = select(rest < scaled, rest, less)
    finite = both(magnitude(x) < inf, binary("!=", y, as_expression(0, y.dtype)))
    found = select(magnitude(y) < inf, with_sign_of(rest, x), x)
    return select(both(finite, y.equals(y)), found, float("nan"))
