"""Which instructions of a stream are in conflict, and what tokens put in order."""
