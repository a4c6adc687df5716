"""How the CPU computes each graph operation, in one file per subject. Importing this registers
all of them."""
