"""How long one inference takes: the CPU's nodes, hand-overs, the accelerator, and all together; and
how long schedules take, many at once."""
