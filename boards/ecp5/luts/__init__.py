"""Fewer LUTs for the same logic of an ECP5."""
