"""How classes are made."""
