"""STORE: from the scratchpads to DRAM."""
