"""What notebooks show of our objects."""
