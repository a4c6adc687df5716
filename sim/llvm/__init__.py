"""The part of Python that the twins are written in, compiled with LLVM."""
