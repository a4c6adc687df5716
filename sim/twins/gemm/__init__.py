"""The twin of GEMM."""
