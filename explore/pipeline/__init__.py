"""A coarse simulation of the steps of a schedule, which makes no program."""
