"""Whole systems under Verilator, and memory timing fitted to them."""
