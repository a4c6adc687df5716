"""A twin for every hardware unit: its registers, and what it does in a cycle."""
