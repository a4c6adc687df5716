"""Twins of LOAD."""
