"""Area of configurations: measured by synthesis, unit by unit, and predicted."""
