"""How the CPU computes each graph operation, in one file per subject. Importing this registers
all of them."""

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
)

__all__ = ["bits", "blocks", "eight_bit", "elementwise", "fixed_point", "functions", "indexing",
           "logic", "matrix", "normalization", "order", "quantize", "recurrent", "reduction",
           "resize", "sampling", "scatter", "shape", "suppression", "window"]
