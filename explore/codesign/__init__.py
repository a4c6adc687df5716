"""Searches configurations for networks on a board: latency against area."""
