"""Passes: pure functions from graph to graph, in one visible list."""
