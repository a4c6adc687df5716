"""Operations lane by lane."""
