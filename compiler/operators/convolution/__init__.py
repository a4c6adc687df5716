"""Convolutions: plain, grouped, transposed, and fused with what follows them."""
