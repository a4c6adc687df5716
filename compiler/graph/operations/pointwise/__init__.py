"""Operations on elements one by one."""
