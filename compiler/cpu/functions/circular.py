"""Circular functions and their inverses. A number of turns is x / 2π, of which only the fraction
counts: the whole number m of x = m × 2^e is multiplied with the fraction of 2^e / 2π, which is in a
table."""

from __future__ import annotations

from math import factorial, inf, pi

from ...expression.expression import Expression, as_expression, both, either, select
from ...expression.functions import as_bits, copy_sign, magnitude, round_half_even, square_root
from . import coefficients
from .reals import compute_in_double, polynomial


def _reduce_angle(x: Expression) -> tuple[Expression, Expression]:
    """The quarter that an angle lies in, and by how much it differs from the middle of that."""
    bits = as_bits(magnitude(x))
    exponent = (bits >> 52) - coefficients.FIRST_EXPONENT
    whole = (bits & ((1 << 52) - 1)) | (1 << 52)
    parts = ((whole >> 27).cast("float64"), coefficients.HALF_OF_BITS), (
        (whole & ((1 << 27) - 1)).cast("float64"), 0)
    fractions = []
    for piece in range(coefficients.PIECES):
        terms = [value * coefficients.turn(exponent, further, piece) for value, further in parts]
        if piece < 2:           # they are exact, and so is what is left of them
            terms = [each - round_half_even(each) for each in terms]
        fractions.append(terms[0] + terms[1])
    turns = fractions[0] + fractions[1]
    quarter = round_half_even(turns * 4)
    rest = turns - quarter * 0.25
    for fraction in fractions[2:]:          # the larger first: where they cancel, nothing is lost
        rest = rest + fraction
    small = magnitude(x) < 0.5
    sign = copy_sign(as_expression(1, x.dtype), x)
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


@compute_in_double
def sin(x: Expression) -> Expression:
    quarter, r = _reduce_angle(x)
    found = select((quarter & 1).equals(1), _cosine(r), _sine(r))
    return _finite(x, select(x.equals(0), x, select(quarter >= 2, found * -1, found)))


@compute_in_double
def cos(x: Expression) -> Expression:
    quarter, r = _reduce_angle(x)
    found = select((quarter & 1).equals(1), _sine(r), _cosine(r))
    negative = either(quarter.equals(1), quarter.equals(2))
    return _finite(x, select(negative, found * -1, found))


@compute_in_double
def tan(x: Expression) -> Expression:
    quarter, r = _reduce_angle(x)
    sine, cosine = _sine(r), _cosine(r)
    found = select((quarter & 1).equals(1), cosine / sine * -1, sine / cosine)
    return _finite(x, select(x.equals(0), x, found))


@compute_in_double
def atan(x: Expression) -> Expression:
    size = magnitude(x)
    inverse = select(size > 1, 1 / size, size)
    far = inverse > 2 ** 0.5 - 1
    t = select(far, (inverse - 1) / (inverse + 1), inverse)
    square = t * t
    found = t - t * square * polynomial(square, coefficients.ATAN)
    found = select(far, found + pi / 4, found)
    return copy_sign(select(size > 1, pi / 2 - found, found), x)


def _asin_rest(square: Expression) -> Expression:
    """asin(x) / x − 1 of numbers up to 1/2."""
    return square * polynomial(square, coefficients.ASIN) / polynomial(square,
                                                                       coefficients.ASIN_OVER)


def _asin_part(x: Expression) -> tuple[Expression, Expression]:
    """Whether a number is nearer to ±1 than to 0, and the asin of its magnitude or, if so, half
    the acos."""
    size = magnitude(x)
    far = size > 0.5
    square = select(far, (1 - size) * 0.5, size * size)
    root = select(far, square_root(square), size)
    return far, root + root * _asin_rest(square)


@compute_in_double
def asin(x: Expression) -> Expression:
    far, found = _asin_part(x)
    return copy_sign(select(far, pi / 2 - found * 2, found), x)


@compute_in_double
def acos(x: Expression) -> Expression:
    far, found = _asin_part(x)
    near = pi / 2 - copy_sign(found, x)
    return select(far, select(x < 0, pi - found * 2, found * 2), near)
