"""The types of scalars, and what operators do to them."""

from __future__ import annotations

from typing import Any

import numpy as np

INDEX, BOOL = "index", "bool"
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
TYPES = (*INTEGERS, *FLOATS, INDEX, BOOL)

# What each operator means in NumPy. Division rounds down; integers wrap.
ARITHMETIC: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply,
                              "//": np.floor_divide, "%": np.mod, "min": np.minimum,
                              "max": np.maximum, ">>": np.right_shift, "<<": np.left_shift}
COMPARISONS: dict[str, Any] = {"==": np.equal, "!=": np.not_equal, "<": np.less,
                               "<=": np.less_equal}
LOGIC: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or}
