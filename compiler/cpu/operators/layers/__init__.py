"""Lowerings of products, windows, reductions, norms and recurrent layers."""
