"""GEMM: the MAC array, and the engine around it."""
