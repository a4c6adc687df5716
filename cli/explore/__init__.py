"""Commands that measure, predict and search."""
