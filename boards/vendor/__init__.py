"""Projects for the vendors' own tools, from the same facts."""
