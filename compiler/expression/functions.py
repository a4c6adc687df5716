"""Functions of scalars that processors have instructions for, or short sequences of them.

    square_root(x)      floor(x)    ceiling(x)    truncated(x)    nearest_even(x)
    magnitude(x)        with_sign_of(x, y)        fused_multiply_add(x, y, z)
    as_bits(x)          from_bits(x): a float as the integer of the same bits, and back
    checked(i, extent): an index that a kernel refuses if it is outside 0 … extent - 1
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..errors import CompileError
from .nodes import Call, Constant, Evaluate, Expression, Function, Operand, as_expression
from .scalars import FLOATS, INDEX, Array

BITS = {"float16": "int16", "float32": "int32", "float64": "int64"}
CHECKED = "checked"


def square_root(x: Expression) -> Expression:
    return _float_function("sqrt", np.sqrt, x)


def floor(x: Expression) -> Expression:
    return _float_function("floor", np.floor, x)


def ceiling(x: Expression) -> Expression:
    return _float_function("ceil", np.ceil, x)


def truncate(x: Expression) -> Expression:
    """Towards zero."""
    return _float_function("trunc", np.trunc, x)


def round_half_even(x: Expression) -> Expression:
    """The nearest whole number, of two the even one."""
    return _float_function("roundeven", np.rint, x)


def magnitude(x: Expression) -> Expression:
    """Without its sign."""
    return _float_function("fabs", np.abs, x)


def copy_sign(x: Expression, sign: Expression) -> Expression:
    return _float_function("copysign", np.copysign, x, sign)


def fused_multiply_add(x: Expression, y: Expression, z: Expression) -> Expression:
    """x × y + z, rounded once."""
    return _float_function("fma", _fma, x, y, z)


def as_bits(x: Expression) -> Expression:
    """The integer with the bits of a float."""
    if x.dtype not in BITS:
        raise CompileError(f"as_bits({x}): {x.dtype} is not one of {', '.join(BITS)}")
    return Call(_bits(BITS[x.dtype]), (x,))


def from_bits(x: Expression) -> Expression:
    """The float with the bits of an integer."""
    floats = {bits: dtype for dtype, bits in BITS.items()}
    if x.dtype not in floats:
        raise CompileError(f"from_bits({x}): {x.dtype} is not one of {', '.join(floats)}")
    return Call(_bits(floats[x.dtype]), (x,))


def check_index(index: Expression, extent: int) -> Expression:
    """An index that comes from data. Kernels end with an error if it is not in 0 … extent - 1;
    in NumPy it is moved inside, for nobody is to see what is computed with it."""
    if index.dtype != INDEX:
        raise CompileError(f"checked({index}): the type is {index.dtype}, but must be {INDEX}")
    return Call(_check_index_function(), (index, Constant(extent)))


@cache
def _check_index_function() -> Function:
    return Function(CHECKED, INDEX, lambda index, extent: np.clip(index, 0, extent - 1))


@cache
def _bits(dtype: str) -> Function:
    return Function(f"bits as {dtype}", dtype, lambda x: np.asarray(x).view(dtype),
                    intrinsic="bitcast")


def _float_function(name: str, evaluate: Evaluate, first: Expression,
                    *others: Operand) -> Expression:
    if first.dtype not in FLOATS:
        raise CompileError(f"{name}({first}): the type is {first.dtype}, but must be "
                           f"{' or '.join(FLOATS)}")
    arguments = (first, *(as_expression(each, first.dtype) for each in others))
    for each in arguments:
        if each.dtype != first.dtype:
            raise CompileError(f"{name}: the types are {first.dtype} and {each.dtype}; cast one "
                               f"of them")
    return Call(_function(name, first.dtype, evaluate), arguments)


@cache
def _function(name: str, dtype: str, evaluate: Evaluate) -> Function:
    return Function(name, dtype, evaluate, intrinsic=f"llvm.{name}")


def _fma(x: Array, y: Array, z: Array) -> Array:
    """Exact for float32. For float64 the error of the product and that of the sum are added, which
    rounds twice in rare cases; infinities and what overflows are added plainly."""
    if np.result_type(x) == np.float32:
        return _fma_of_singles(x, y, z)
    product = x * y
    total = product + z
    back = total - product
    rest = (product - (total - back)) + (z - back) + _product_error(x, y, product)
    return np.where(np.isfinite(total + rest), total + rest, total)


def _fma_of_singles(x: Array, y: Array, z: Array) -> Array:
    """The product fits in 64 bits. The sum is made odd if it is not exact, so that rounding it to
    32 bits gives what rounding once would."""
    product = np.asarray(x, np.float64) * np.asarray(y, np.float64)
    added = np.asarray(z, np.float64)
    total = product + added
    back = total - product
    rest = (product - (total - back)) + (added - back)
    even = (np.asarray(total).view(np.int64) & 1) == 0
    towards = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    exact = (rest == 0) | ~np.isfinite(rest)
    return np.where(exact | ~even, total, towards).astype(np.float32)


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """x × y - product (Dekker)."""
    split = np.float64((1 << 27) + 1)

    def halves(value: Array) -> tuple[Array, Array]:
        high = split * value - (split * value - value)
        return high, value - high
    (one, rest), (other, more) = halves(x), halves(y)
    error: Array = rest * more - (((product - one * other) - rest * other) - one * more)
    return error
