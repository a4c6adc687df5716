"""Lattice ECP5: the flow, and the netlist passes between Yosys and nextpnr."""
