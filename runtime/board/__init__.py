"""Boards as devices: drivers for Linux on the board itself, and for links to it."""
