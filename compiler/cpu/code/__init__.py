"""Loop nests as LLVM's intermediate language: scalars, vectors, statements, kernels."""
