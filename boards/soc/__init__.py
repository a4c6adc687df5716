"""The system on a chip: processor, memory controller and accelerator, for boards and simulation."""
