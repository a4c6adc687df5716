"""Sums of products in blocks that stay in registers."""
