"""The operations that there are: importing this makes all of them known."""

from . import elementwise, matrix, quantize, shape, window

__all__ = ["elementwise", "matrix", "quantize", "shape", "window"]
