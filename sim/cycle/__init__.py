"""The cycle-exact run: the main loop over all twins, and how it skips repeated cycles."""
