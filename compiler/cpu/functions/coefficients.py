"""The numbers that functions of real numbers are made of: polynomials, the highest power first, and
tables."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from ...expression.expression import Expression, maximum, minimum
from ...expression.tensor import Tensor, constant

LOG2_E = 1.4426950408889634
MAGIC = {"float32": 1.5 * 2.0 ** 23, "float64": 1.5 * 2.0 ** 52}    # a sum with it is whole
# ln 2 as a number with so few bits that multiples are exact, and the rest (Cephes, fdlibm).
LN2 = {"float32": (0.693359375, -2.12194440e-4),
       "float64": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}

# (e^r − 1 − r) / r², for r up to ln 2 / 2 (Cephes).
EXP32 = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
         5.0000001201e-1)
# (ln(1 + f) − f + f² / 2) / f³, for 1 + f from √½ to √2 (Cephes).
LOG32 = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
# (ln((1 + s) / (1 − s)) / s − 2) / s², in s² (fdlibm).
LOG64 = (1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
         2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
         6.666666666666735130e-01)
# erf(x) / x in x², for x up to 1; (1 − erf(x)) × e^(x²) / t in t = 2 / (2 + x), from 1 to 10 and to
# 28. Interpolated at Chebyshev's points; relative errors are 4e-11, 4e-23, 3e-10 and 2e-16.
ERF32 = (-9.667044571486996e-06, 0.00011265959025606609, -0.0008484080405535107,
         0.005221031807858023, -0.026865430727670243, 0.11283782495236845, -0.3761263846802871,
         1.1283791670615435)
ERF64 = (2.8067128195611264e-13, -6.1967364287877e-12, 9.323723518153027e-11,
         -1.2277734486795524e-09, 1.4806027146128752e-08, -1.636576864883207e-07,
         1.6462110782018636e-06, -1.4925650236967501e-05, 0.00012055332978879483,
         -0.0008548327023403001, 0.005223977625441674, -0.026866170645131218, 0.11283791670955126,
         -0.37612638903183754, 1.1283791670955126)
ERFC32 = (-0.06920291641829034, 0.21674631483343454, -0.1878788517801706, -0.03333890204342069,
          0.010437745315261699, 0.07301600009209934, 0.17949743190941286, 0.2463144940213257,
          0.28213988611093443, 0.28209314792505236)
ERFC64 = (0.15972548340034684, -1.0146263431150289, 2.8371128997172566, -4.4945303285059985,
          4.273329134829929, -2.3113713054538296, 0.5383014429812967, 0.03602714934515524,
          -0.07694021461106373, 0.11802747991355012, -0.02578339650588974, -0.048445661622675704,
          -0.05758302419685266, -0.004305081979391305, 0.08373766862475736, 0.17630983134420547,
          0.24683291786528236, 0.2820947924078261, 0.2820947917666148)
# (x − atan(x)) / x³ in x², for x up to 7/16 (fdlibm).
ATAN = (1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
        -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
        9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
        -1.99999999998764832476e-01, 3.33333333333329318027e-01)
# (asin(x) − x) / x³ in x², for x up to 1/2, as a quotient (fdlibm).
ASIN = (3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
        2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01)
ASIN_OVER = (7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e+00,
             -2.40339491173441421878e+00, 1.0)

# Turns: row e of the table has the fraction of 2^(e + SMALLEST) / 2π, in pieces of 24 bits: their
# products with 27 bits are exact, and so are sums of two of these.
PIECES, PIECE_BITS, HALF_OF_BITS = 5, 24, 27
FIRST_EXPONENT = 1022                       # that of 1/2, below which nothing is turned
ROWS = 2047 - FIRST_EXPONENT
SMALLEST = FIRST_EXPONENT - 1023 - 52       # the exponent of the last bit of such numbers
PI_BITS = 1400


@cache
def _turns() -> Tensor:
    return constant("turns", _fractions())


def _fractions() -> npt.NDArray[np.float64]:
    inverse = _inverse_of_two_pi()          # times 2^PI_BITS
    rows = []
    for row in range(ROWS + HALF_OF_BITS):
        exponent = row + SMALLEST
        rest = (inverse << exponent if exponent >= 0 else inverse >> -exponent) % (1 << PI_BITS)
        pieces = []
        for piece in range(PIECES):
            left = PI_BITS - PIECE_BITS * (piece + 1)
            last = piece == PIECES - 1
            whole = rest if last else rest >> left << left
            pieces.append(float(Fraction(whole, 1 << PI_BITS)))
            rest -= whole
        rows.append(pieces)
    return np.array(rows)


def _inverse_of_two_pi() -> int:
    """1 / 2π × 2^PI_BITS, by Machin's formula."""
    more = PI_BITS + 64

    def inverse_tangent(divisor: int) -> int:
        term = total = (1 << more) // divisor
        for odd in range(3, more, 2):
            term //= divisor * divisor
            total += term // odd if odd % 4 == 1 else -(term // odd)
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))
    return (1 << (PI_BITS + more)) // (2 * pi)


def turn(exponent: Expression, further: int, piece: int) -> Expression:
    """A piece of the fraction for an exponent, counted from that of 1/2, and some bits more. For
    less, and for what is infinite, it is some number."""
    row = minimum(maximum(exponent.cast("index"), 0), ROWS - 1)
    return _turns()[row + further, piece]
