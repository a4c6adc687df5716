"""Scalar and tensor expressions: what is computed, without a word on how."""
