"""What the benchmarks measure: layers, nodes, and models with data."""
