"""Whole networks: which node runs where, memory, and one instruction stream for all."""
