"""What a network computes on samples, and the ranges that follow from it."""
