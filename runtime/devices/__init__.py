"""Devices that run programs: functional, cycle-exact, and the RTL."""
