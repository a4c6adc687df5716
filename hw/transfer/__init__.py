"""What LOAD and STORE share: walking boxes in DRAM, and packing tiles into beats."""
