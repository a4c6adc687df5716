"""What every instruction of a stream touches, as one table of affine accesses.

A row says: this instruction reads (or writes) the cells `base + Σ counter × stride` of a space,
for every combination of three loop counters. Cells are tiles of a scratchpad or bytes of a
segment. Rows of a gemm or a window stand for one column of its micro-ops and are relative to each
of them. The verifier proves orders from this table, and tokens are derived from it. `fill_accesses`
makes it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

DRAM = 8                    # space of segment 0; scratchpads are numbered as in `Buffer`
SPACES = 16
NO_COLUMN = NOT_LONG = -1

ROW = np.dtype([
    ("instruction", "i8"), ("space", "i8"), ("write", "i8"), ("base", "i8"),
    ("loops", "i8", (3,)), ("stride", "i8", (3,)),
    ("divisor", "i8"),      # cells are index // divisor: rows of weight tiles become tiles
    ("span", "i8"),         # ... or, where a gemm reads several tiles of out as one, as many cells
    ("grid", "i8"),         # indices that are no multiple of it are outside
    ("column", "i8"),       # field of the micro-op that is added to the base, or NO_COLUMN
    ("uop", "i8"), ("count", "i8"),
    ("long", "i8"),         # number of a box of DRAM that has very many rows, or NOT_LONG
])
Table = npt.NDArray[np.void]
assert ROW.fields is not None
AT = {name: place // 8 for name, (_, place, *_) in ROW.fields.items()}      # among numbers


class Row(Protocol):
    """One element of the table, as compiled functions see it."""

    instruction: int
    space: int
    write: bool
    base: int
    loops: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]
    divisor: int
    span: int
    grid: int
    column: int
    uop: int
    count: int
    long: int
