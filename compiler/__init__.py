"""From what is to be computed to instruction streams."""
