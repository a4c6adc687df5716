"""A twin of every hardware unit: its registers, and its behaviour in a cycle."""
