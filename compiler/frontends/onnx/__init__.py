"""ONNX models read into graphs. `table.OPERATORS` has all operators; files have those of a kind."""

from .read_onnx import read_onnx

__all__ = ["read_onnx"]
