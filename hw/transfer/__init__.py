"""Shared by LOAD and STORE: bursts of a box in DRAM, and the packing of tiles into beats."""
