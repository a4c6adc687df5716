"""Lowerings of operations on elements one by one."""
