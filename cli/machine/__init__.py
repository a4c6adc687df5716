"""Commands about the machine that runs this: what it has, and its shell."""
