"""The accelerator in Amaranth, one unit per file."""
