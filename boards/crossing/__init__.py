"""From one clock to another: queues, registers and resets between the accelerator and a system."""
