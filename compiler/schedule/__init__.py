"""Schedules: how a tensor expression is computed, and the loop nest that follows."""
