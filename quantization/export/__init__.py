"""Graphs written as ONNX models."""
