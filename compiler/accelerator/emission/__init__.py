"""Emission: scratchpad allocation, transfers, and the instruction stream."""
