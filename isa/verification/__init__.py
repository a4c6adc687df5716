"""Proof before execution: bounds, order, and the tokens that data demand."""
