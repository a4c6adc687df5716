"""Helpers for code that numba compiles."""
