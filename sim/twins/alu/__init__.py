"""Twins of the ALU."""
