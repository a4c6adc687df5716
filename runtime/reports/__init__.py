"""Reports for people and tools: layers, profiles, tables and traces."""
