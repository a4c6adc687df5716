"""A system without a processor in few LUTs: a serial line, SDR memory and the accelerator."""
