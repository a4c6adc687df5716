"""The types of scalars, and what operators do to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import arrays
from ...base.arrays import Dtype
from ...base.checked_values import integer, quote
from ..errors import CompileError

Array = arrays.Array
INDEX, BOOL = "index", "bool"
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
TYPES = (*INTEGERS, *FLOATS, INDEX, BOOL)

LIMITS = {each: (int(np.iinfo(each).min), int(np.iinfo(each).max)) for each in INTEGERS}

LARGEST = (1 << 63) - 1     # of an index, an extent or a factor

# What each operator means in NumPy. `//` rounds down, `/` is for floats alone; integers wrap.
ARITHMETIC: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
                              "//": np.floor_divide, "%": np.mod, "min": np.minimum,
                              "max": np.maximum, ">>": np.right_shift, "<<": np.left_shift,
                              "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
OF_INTEGERS = (">>", "<<", "&", "|", "^")
OF_FLOATS = ("/",)
COMPARISONS: dict[str, np.ufunc] = {"==": np.equal, "!=": np.not_equal, "<": np.less,
                               "<=": np.less_equal}
LOGIC: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or}


def check_integer(value: object, name: str, least: int = 1) -> int:
    """A whole number as Python's own: those of NumPy are accepted, truth values and floats are
    not."""
    if type(value) is int and least <= value <= LARGEST:    # as nearly always
        return value
    number = integer(value)
    if number is None or not least <= number <= LARGEST:
        raise CompileError(f"{name} is {quote(value)}, but must be a whole number from {least} to "
                           f"{LARGEST}")
    return number


def saturate(value: Any, dtype: Dtype) -> Array:
    """Floats as integers: without their fraction, at most the last number there is; NaN is 0."""
    least, most = LIMITS[dtype.name]
    if np.ndim(value) == 0:             # of which interpreters have many
        number = float(value)
        return np.asarray(0 if number != number else least if number <= least
                          else most if number >= most else int(number), dtype)
    value = np.asarray(value, np.float64)
    fits = (value >= float(least)) & (value < float(most))      # as a float, `most` is one above
    inside = np.where(fits, value, 0.0).astype(dtype)
    if fits.all():
        return inside
    return np.where(value >= float(most), dtype.type(most),
                    np.where(value < float(least), dtype.type(least), inside))
