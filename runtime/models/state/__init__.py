"""What sessions remember from one inference to the next, and whose turn it is."""
