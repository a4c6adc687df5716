"""Compiled models and kernels: images, sessions, inference, and the CPU half."""
