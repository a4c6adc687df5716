"""Twins of the bus masters, and the memory model behind them."""
