"""Zynq-7000: the accelerator beside two ARM cores, from Verilog to a bitstream with open tools."""
