"""Lowerings of operations on images and boxes."""
