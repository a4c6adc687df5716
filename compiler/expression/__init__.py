"""Scalar and tensor expressions: what is computed, not how."""
