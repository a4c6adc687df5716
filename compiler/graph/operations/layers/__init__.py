"""Operations that sum: products, windows, reductions, norms and recurrent layers."""
