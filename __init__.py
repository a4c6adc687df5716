"""Microtron: a co-design kit for small tensor accelerators."""

__version__ = "0.1.0"
