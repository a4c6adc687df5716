"""The cycle-exact run: the loop over all twins, and what it skips."""
