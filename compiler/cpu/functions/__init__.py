"""Functions of real numbers as expressions of what every processor has: no library is called, and
whatever computes expressions, one number or many at a time, computes these.

Arguments are brought into a small range, where a polynomial is near enough, and results back. Those
of 32 bits are within a few units in the last place, of 64 bits as well; infinities, zeros with
their sign, denormal numbers and what is no number give what IEEE 754 says. Half precision is
computed in 32 bits.
"""

from .activations import (
    acosh,
    asinh,
    atanh,
    cosh,
    mish,
    sigmoid,
    sinh,
    softplus,
    tanh,
)
from .circular import acos, asin, atan, cos, sin, tan
from .error import erf, gelu
from .exponential import exp, expm1, ln, log1p
from .powers import constant_power, modulo, power, remainder

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "constant_power", "cos", "cosh", "erf",
    "exp", "expm1", "gelu", "ln", "log1p", "mish", "modulo", "power", "remainder", "sigmoid", "sin",
    "sinh", "softplus", "tan", "tanh",
]
