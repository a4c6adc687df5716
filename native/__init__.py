"""Machine code: LLVM modules optimized for a target, as object files that are kept and loaded."""
