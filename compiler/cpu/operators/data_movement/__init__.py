"""Lowerings of operations that move numbers and compute nothing."""
