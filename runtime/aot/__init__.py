"""Ahead of time: a compiled model as object files and C tables, for a board's own processor."""
