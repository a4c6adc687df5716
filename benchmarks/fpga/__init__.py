"""How fast and how large the accelerator is on an FPGA: synthesis, timing, place and route."""
