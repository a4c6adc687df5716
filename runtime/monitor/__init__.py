"""The other end of the monitor's serial line: load a network into a board's memory, and run it."""
