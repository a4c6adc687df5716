"""Builds: steps and their cache, the tools that they run, plans and reports."""
