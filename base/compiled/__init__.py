"""Functions that numba compiles, and that are called without it."""
