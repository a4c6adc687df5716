"""What the accelerator does, in software: the functional reference and the cycle-exact model."""
