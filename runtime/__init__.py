"""Devices that run programs, and execution on any of them."""
