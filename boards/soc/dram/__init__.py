"""The way from the system and the accelerator to LiteDRAM."""
