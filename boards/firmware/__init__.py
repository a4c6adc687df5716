"""Firmware for the soft system: the monitor in its ROM, and networks as images for it."""
