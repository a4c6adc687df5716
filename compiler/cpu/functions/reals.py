"""What functions of real numbers are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from ...expression.expression import Expression, as_expression, binary

Function = Callable[[Expression], Expression]


def for_real_types(function: Function) -> Function:
    """A function of any real type, from one of 32 and 64 bits."""
    @wraps(function)
    def wrapper(x: Expression) -> Expression:
        return function(x.cast("float32")).cast("float16") if x.dtype == "float16" else function(x)
    return wrapper


def compute_in_double(function: Function) -> Function:
    """A function of any real type, computed in 64 bits."""
    @wraps(function)
    def wrapper(x: Expression) -> Expression:
        return function(x.cast("float64")).cast(x.dtype)
    return wrapper


def polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """Coefficients begin with that of the highest power."""
    total = as_expression(coefficients[0], x.dtype)
    for each in coefficients[1:]:
        total = total * x + each
    return total


def is_nan(x: Expression) -> Expression:
    """Whether a number is none."""
    return binary("!=", x, x)
