"""How the CPU computes each graph operation, in one file per subject. Importing this registers
all of them."""

from .data_movement import lower_blocks, lower_indexing, lower_scatter, lower_shape
from .layers import (
    lower_matmul,
    lower_normalization,
    lower_recurrent,
    lower_reduction,
    lower_scan,
    lower_window,
)
from .pointwise import lower_binary, lower_bits, lower_logic, lower_quantize, lower_unary
from .tflite import lower_eight_bit, lower_fixed_point
from .vision import lower_resize, lower_sampling, lower_suppression

__all__ = ["lower_binary", "lower_bits", "lower_blocks", "lower_eight_bit", "lower_fixed_point",
           "lower_indexing", "lower_logic", "lower_matmul", "lower_normalization", "lower_quantize",
           "lower_recurrent", "lower_reduction", "lower_resize", "lower_sampling", "lower_scan",
           "lower_scatter", "lower_shape", "lower_suppression", "lower_unary", "lower_window"]
