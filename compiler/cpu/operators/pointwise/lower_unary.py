"""Functions of one number, and numbers as another type."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from ....expression.expression import BOOL, Expression, maximum, minimum, select
from ....expression.functions import ceiling, floor, magnitude, round_half_even, square_root
from ....expression.tensor import Tensor
from ....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from ....graph.types import TensorType
from ... import functions
from ...registry import Operand, lowers
from ..lowering import Axes, at, each, nonzero, real, saturate

Function = Callable[[Expression, float, float], Expression]     # of a number, alpha and beta


def _ignore_parameters(function: Callable[[Expression], Expression]) -> Function:
    return lambda x, alpha, beta: function(x)


def _elu(x: Expression, alpha: float) -> Expression:
    return select(x < 0, functions.expm1(minimum(x, 0)) * alpha, x)


def _hard_sigmoid(x: Expression, alpha: float, beta: float) -> Expression:
    return minimum(maximum(x * alpha + beta, 0), 1)


def _gelu_tanh(x: Expression) -> Expression:
    """x / 2 × (1 + tanh(u)) = x × sigmoid(2 u)."""
    u = (x + x * x * x * 0.044715) * sqrt(2 / pi)
    return x * functions.sigmoid(u * 2)


def _sign(x: Expression) -> Expression:
    """Of zero, and of what is no number, itself."""
    return select(x > 0, 1, select(x < 0, -1, x) if x.dtype[0] != "u" else x)


REAL: dict[UnaryKind, Function] = {
    UnaryKind.ABS: _ignore_parameters(magnitude),
    UnaryKind.NEG: _ignore_parameters(lambda x: x * -1),
    UnaryKind.SIGN: _ignore_parameters(_sign),
    UnaryKind.SQUARE: _ignore_parameters(lambda x: x * x),
    UnaryKind.EXP: _ignore_parameters(functions.exp),
    UnaryKind.LOG: _ignore_parameters(functions.ln),
    UnaryKind.SQRT: _ignore_parameters(square_root),
    UnaryKind.RSQRT: _ignore_parameters(lambda x: 1 / square_root(x)),
    UnaryKind.RECIPROCAL: _ignore_parameters(lambda x: 1 / x),
    UnaryKind.SIN: _ignore_parameters(functions.sin),
    UnaryKind.COS: _ignore_parameters(functions.cos),
    UnaryKind.TAN: _ignore_parameters(functions.tan),
    UnaryKind.ASIN: _ignore_parameters(functions.asin),
    UnaryKind.ACOS: _ignore_parameters(functions.acos),
    UnaryKind.ATAN: _ignore_parameters(functions.atan),
    UnaryKind.SINH: _ignore_parameters(functions.sinh),
    UnaryKind.COSH: _ignore_parameters(functions.cosh),
    UnaryKind.ASINH: _ignore_parameters(functions.asinh),
    UnaryKind.ACOSH: _ignore_parameters(functions.acosh),
    UnaryKind.ATANH: _ignore_parameters(functions.atanh),
    UnaryKind.TANH: _ignore_parameters(functions.tanh),
    UnaryKind.ERF: _ignore_parameters(functions.erf),
    UnaryKind.SIGMOID: _ignore_parameters(functions.sigmoid),
    UnaryKind.SOFTPLUS: _ignore_parameters(functions.softplus),
    UnaryKind.SOFTSIGN: _ignore_parameters(lambda x: x / (magnitude(x) + 1)),
    UnaryKind.FLOOR: _ignore_parameters(floor), UnaryKind.CEIL: _ignore_parameters(ceiling),
    UnaryKind.ROUND: _ignore_parameters(round_half_even), UnaryKind.HARD_SIGMOID: _hard_sigmoid,
    UnaryKind.HARD_SWISH: _ignore_parameters(lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    UnaryKind.SWISH: lambda x, alpha, beta: x * functions.sigmoid(x * alpha),
    UnaryKind.MISH: _ignore_parameters(functions.mish),
    UnaryKind.GELU: _ignore_parameters(functions.gelu),
    UnaryKind.GELU_TANH: _ignore_parameters(_gelu_tanh),
    UnaryKind.ELU: lambda x, alpha, beta: _elu(x, alpha),
    UnaryKind.SELU: lambda x, alpha, beta: _elu(x, alpha) * beta,
    UnaryKind.CELU: lambda x, alpha, beta: select(x < 0, _elu(x / alpha, 1) * alpha, x),
    UnaryKind.LEAKY_RELU: lambda x, alpha, beta: select(x < 0, x * alpha, x),
    UnaryKind.THRESHOLDED_RELU: lambda x, alpha, beta: select(alpha < x, x, 0)}
INTEGER: dict[UnaryKind, Function] = {
    UnaryKind.ABS: _ignore_parameters(lambda x: x if x.dtype[0] == "u"
                                      else select(x < 0, 0 - x, x)),
    UnaryKind.NEG: _ignore_parameters(lambda x: 0 - x), UnaryKind.SIGN: _ignore_parameters(_sign),
    UnaryKind.SQUARE: _ignore_parameters(lambda x: x * x)}


@lowers(Unary)
def unary(operation: Unary, result: TensorType, x: Operand) -> Tensor:
    function = (REAL if x.type.is_float else INTEGER)[operation.kind]
    return each(operation, result, lambda i: function(
        real(x, i), operation.alpha, operation.beta).cast(result.dtype))


@lowers(Cast)
def cast(operation: Cast, result: TensorType, x: Operand) -> Tensor:
    def element(i: Axes) -> Expression:
        value = at(x, i)
        if result.dtype == BOOL:
            return nonzero(value)
        if x.type.is_float and result.is_integer:
            return saturate(real(x, i), result.dtype)
        return value.cast(result.dtype)

    return each(operation, result, element)
