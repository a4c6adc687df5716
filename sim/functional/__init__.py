"""What every instruction means: the reference semantics and their fast kernels."""
