"""Operations that move numbers and compute nothing."""
