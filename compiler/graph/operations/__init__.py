"""The operations that there are: importing this makes all of them known."""

from .data_movement import blocks, indexing, scatter, shape
from .layers import matmul, normalization, recurrent, reduction, scan, window, window_places
from .pointwise import binary, bits, logic, quantize, unary
from .tflite import eight_bit, fixed_point
from .vision import resize, sampling, suppression

__all__ = ["binary", "bits", "blocks", "eight_bit", "fixed_point", "indexing", "logic", "matmul",
           "normalization", "quantize", "recurrent", "reduction", "resize", "sampling", "scan",
           "scatter", "shape", "suppression", "unary", "window", "window_places"]
