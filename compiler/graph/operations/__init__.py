"""The operations that there are: importing this makes all of them known."""

from . import (
    blocks,
    elementwise,
    fixed_point,
    functions,
    indexing,
    logic,
    matrix,
    normalization,
    quantize,
    reduction,
    resize,
    shape,
    window,
)

__all__ = ["blocks", "elementwise", "fixed_point", "functions", "indexing", "logic", "matrix",
           "normalization", "quantize", "reduction", "resize", "shape", "window"]
