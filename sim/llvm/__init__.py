"""A compiler, with LLVM, for the subset of Python that the twins are written in."""
