"""Software models of the accelerator: the functional reference and the cycle-exact simulator."""
