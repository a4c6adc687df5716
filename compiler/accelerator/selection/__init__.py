"""Instruction selection: transfers, intrinsics, and the loops that the hardware runs."""
