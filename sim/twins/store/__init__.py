"""Twins of STORE."""
