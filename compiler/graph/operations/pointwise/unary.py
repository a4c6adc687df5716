"""Functions of one number, and numbers as another type.

Real results are computed in 64 bits and rounded once: within one unit in the last place of the true
value, which no framework promises more than.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import erf as exact_erf
from math import factorial, pi, sqrt

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, operand
from ...types import DTYPES, Array, GraphError, TensorType

CELLS = 64                  # of the table for erf, in each unit
FURTHEST = 6                # beyond, erf is 1 in 64 bits
TERMS = 8                   # of the series in a cell: an error below 1e-16


class UnaryKind(Enum):
    ABS = "abs"
    NEG = "neg"
    SIGN = "sign"
    SQUARE = "square"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIPROCAL = "reciprocal"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    TANH = "tanh"
    ERF = "erf"
    SIGMOID = "sigmoid"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"                         # ties to even
    HARD_SIGMOID = "hard_sigmoid"           # alpha × x + beta, between 0 and 1
    HARD_SWISH = "hard_swish"
    SWISH = "swish"                         # x × sigmoid(alpha × x)
    MISH = "mish"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"                 # the approximation of gelu with tanh
    ELU = "elu"                             # below 0: alpha × (exp(x) − 1)
    SELU = "selu"                           # beta × elu
    CELU = "celu"                           # below 0: alpha × (exp(x / alpha) − 1)
    LEAKY_RELU = "leaky_relu"               # below 0: alpha × x
    THRESHOLDED_RELU = "thresholded_relu"   # up to alpha: 0


def erf(x: Array) -> Array:
    """The error function: from the nearest of some known values, by the series around it, whose
    terms are Hermite polynomials."""
    known = np.array([exact_erf(each / CELLS) for each in range(-FURTHEST * CELLS,
                                                                FURTHEST * CELLS + 1)])
    values = np.clip(x.astype(np.float64), -FURTHEST, FURTHEST)
    cell = np.rint(np.nan_to_num(values) * CELLS).astype(np.int64)
    centre = cell / CELLS
    away = values - centre
    total, power = np.zeros_like(values), np.ones_like(values)
    older, polynomial = np.zeros_like(values), np.ones_like(values)
    for order in range(TERMS):
        power = power * away
        total += (-1) ** order * polynomial * power / factorial(order + 1)
        older, polynomial = polynomial, 2 * centre * polynomial - 2 * order * older
    found: Array = known[cell + FURTHEST * CELLS] + 2 / sqrt(pi) * np.exp(-centre ** 2) * total
    return found


def _sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-x))
    return found


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


Function = Callable[[Array, float, float], Array]       # of numbers, alpha and beta


def _ignore_parameters(function: Callable[[Array], Array]) -> Function:
    return lambda x, alpha, beta: function(x)


ON_INTEGERS: dict[UnaryKind, Function] = {
    UnaryKind.ABS: _ignore_parameters(np.abs), UnaryKind.NEG: _ignore_parameters(np.negative),
    UnaryKind.SIGN: _ignore_parameters(np.sign), UnaryKind.SQUARE: _ignore_parameters(np.square)}
FUNCTIONS: dict[UnaryKind, Function] = ON_INTEGERS | {
    UnaryKind.EXP: _ignore_parameters(np.exp), UnaryKind.LOG: _ignore_parameters(np.log),
    UnaryKind.SQRT: _ignore_parameters(np.sqrt),
    UnaryKind.RSQRT: _ignore_parameters(lambda x: 1 / np.sqrt(x)),
    UnaryKind.RECIPROCAL: _ignore_parameters(lambda x: 1 / x),
    UnaryKind.SIN: _ignore_parameters(np.sin), UnaryKind.COS: _ignore_parameters(np.cos),
    UnaryKind.TAN: _ignore_parameters(np.tan),
    UnaryKind.ASIN: _ignore_parameters(np.arcsin), UnaryKind.ACOS: _ignore_parameters(np.arccos),
    UnaryKind.ATAN: _ignore_parameters(np.arctan), UnaryKind.SINH: _ignore_parameters(np.sinh),
    UnaryKind.COSH: _ignore_parameters(np.cosh), UnaryKind.ASINH: _ignore_parameters(np.arcsinh),
    UnaryKind.ACOSH: _ignore_parameters(np.arccosh),
    UnaryKind.ATANH: _ignore_parameters(np.arctanh),
    UnaryKind.TANH: _ignore_parameters(np.tanh), UnaryKind.ERF: _ignore_parameters(erf),
    UnaryKind.SIGMOID: _ignore_parameters(_sigmoid),
    UnaryKind.SOFTPLUS: _ignore_parameters(lambda x: np.logaddexp(0, x)),
    UnaryKind.SOFTSIGN: _ignore_parameters(lambda x: x / (1 + np.abs(x))),
    UnaryKind.FLOOR: _ignore_parameters(np.floor), UnaryKind.CEIL: _ignore_parameters(np.ceil),
    UnaryKind.ROUND: _ignore_parameters(np.rint), UnaryKind.HARD_SIGMOID: _hard_sigmoid,
    UnaryKind.HARD_SWISH: _ignore_parameters(lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    UnaryKind.SWISH: lambda x, alpha, beta: x * _sigmoid(alpha * x),
    UnaryKind.MISH: _ignore_parameters(lambda x: x * np.tanh(np.logaddexp(0, x))),
    UnaryKind.GELU: _ignore_parameters(lambda x: x / 2 * (1 + erf(x / sqrt(2)))),
    UnaryKind.GELU_TANH: _ignore_parameters(
        lambda x: x / 2 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))),
    UnaryKind.ELU: lambda x, alpha, beta: _elu(x, alpha),
    UnaryKind.SELU: lambda x, alpha, beta: beta * _elu(x, alpha),
    UnaryKind.CELU: lambda x, alpha, beta: np.where(x < 0, alpha * _elu(x / alpha, 1), x),
    UnaryKind.LEAKY_RELU: lambda x, alpha, beta: np.where(x < 0, alpha * x, x),
    UnaryKind.THRESHOLDED_RELU: lambda x, alpha, beta: np.where(x > alpha, x, 0)}


@dataclass(frozen=True, kw_only=True)
class Unary(Operation):
    """A function of each number. Some have parameters, which UnaryKind names. A function of
    quantized tensors is a Lookup."""

    kind: UnaryKind
    x: str = operand()
    alpha: float = 0
    beta: float = 0

    def infer(self, x: TensorType) -> TensorType:
        allowed = x.is_float or (x.is_integer and self.kind in ON_INTEGERS)
        if not allowed or x.is_quantized:
            raise GraphError(f"the input is {x}, but must be real numbers"
                             + (" or plain integers" if self.kind in ON_INTEGERS else ""))
        return x

    def compute(self, result: TensorType, x: Value) -> Array:
        wide = x.array.astype(np.float64) if x.type.is_float else x.array
        return FUNCTIONS[self.kind](wide, self.alpha, self.beta)


@dataclass(frozen=True, kw_only=True)
class Cast(Operation):
    """Numbers as another type. Real numbers lose their fraction and saturate, and what is no
    number becomes 0; integers keep their low bits."""

    x: str = operand()
    dtype: str

    def infer(self, x: TensorType) -> TensorType:
        if self.dtype not in DTYPES or x.is_quantized:
            raise GraphError(f"{x} cannot become {self.dtype}; types are {', '.join(DTYPES)}, "
                             f"without scales")
        return TensorType(x.shape, self.dtype)

    def compute(self, result: TensorType, x: Value) -> Array:
        if not (x.type.is_float and result.is_integer):
            return x.array.astype(self.dtype)
        low, high = result.range
        whole = np.trunc(np.nan_to_num(x.array.astype(np.float64)))
        inside = np.where((whole > low) & (whole < high), whole, 0).astype(self.dtype)
        return np.where(whole <= low, low, np.where(whole >= high, high, inside))
