"""Small pieces of combinational logic that several units use."""

from collections.abc import Sequence

from amaranth.hdl import Mux, Value


def exponent(power: int) -> int:
    """The exponent of a power of two."""
    return power.bit_length() - 1


def select(values: Sequence[Value], number: Value) -> Value:
    """One of a power of two of values: a tree of multiplexers, which is the least logic."""
    for bit in number[:exponent(len(values))]:
        values = [Mux(bit, odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def first(claims: Sequence[tuple[Value, Value]]) -> Value:
    """The value of the first (condition, value) that holds; when none does, the last value."""
    *claims, (_, value) = claims
    for holds, other in reversed(claims):
        value = Mux(holds, other, value)
    return value
