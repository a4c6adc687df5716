"""Gowin GW2A: the flow, and what is special about its parts."""
