"""FPGA boards: facts about them, and how a configuration becomes a bitstream for one."""
