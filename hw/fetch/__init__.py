"""FETCH, and the command queues that it fills."""
