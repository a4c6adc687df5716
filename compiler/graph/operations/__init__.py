"""The operations that there are: importing this makes all of them known."""

from . import (
    blocks,
    eight_bit,
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

__all__ = ["blocks", "eight_bit", "elementwise", "fixed_point", "functions", "indexing", "logic",
           "matrix", "normalization", "quantize", "reduction", "resize", "shape", "window"]
