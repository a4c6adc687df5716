"""The operations that there are: importing this makes all of them known."""

from . import (
    bits,
    blocks,
    eight_bit,
    elementwise,
    fixed_point,
    functions,
    indexing,
    logic,
    matrix,
    normalization,
    order,
    quantize,
    recurrent,
    reduction,
    resize,
    sampling,
    scatter,
    shape,
    suppression,
    window,
    window_places,
)

__all__ = ["bits", "blocks", "eight_bit", "elementwise", "fixed_point", "functions", "indexing",
           "logic", "matrix", "normalization", "order", "quantize", "recurrent", "reduction",
           "resize", "sampling", "scatter", "shape", "suppression", "window", "window_places"]
