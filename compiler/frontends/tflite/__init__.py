"""TFLite models read into graphs, to the bit as TFLite's reference kernels compute them."""

from .read_tflite import read_tflite

__all__ = ["read_tflite"]
