"""The CPU's half: graph operations as expressions and loop nests, and these as machine code."""
