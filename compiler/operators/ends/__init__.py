"""What becomes of the first and last instructions of a program that runs alone."""
