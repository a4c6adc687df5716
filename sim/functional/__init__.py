"""The reference semantics of every instruction, and fast kernels for them."""
