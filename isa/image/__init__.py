"""Programs as files: the program image."""
