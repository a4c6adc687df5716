"""Lowerings to the bit as TFLite's reference kernels compute."""
