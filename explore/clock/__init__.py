"""Clocks of configurations: measured by placing and routing them, and predicted."""
