"""Twins of what LOAD and STORE share."""
