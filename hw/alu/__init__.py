"""The ALU: lanes, requantization, and the engine around them."""
