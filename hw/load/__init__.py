"""LOAD: from DRAM to the scratchpads."""
