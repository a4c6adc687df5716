"""Records on the stack of compiled code, which become values in processor registers."""

from __future__ import annotations

from typing import Any

import numba.core.cgutils
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

cgutils: Any = numba.core.cgutils
ALIGNMENT = 8


def blank(dtype: np.dtype[np.void]) -> Any:
    """A function for compiled code that returns a record of zeros. It must not outlive its caller.

    As long as all that gets the record is inlined, and none of its fields is an array, it exists
    only as values in registers: reading and writing it costs nothing.
    """
    kind: Any = numba.from_dtype(dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), dtype.itemsize))
        record.align = ALIGNMENT
        cgutils.memset(builder, record, ir.IntType(64)(dtype.itemsize), 0)
        return record

    def _blank(typing_context: Any) -> Any:
        return kind(), generate
    return intrinsic(_blank)
