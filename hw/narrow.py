"""Bases and strides of indices with fewer bits, which still tell when an index is out of range."""

from amaranth.hdl import Cat, Value

from .interfaces import bits_for


def reach_bits(tiles: int) -> int:
    """Bits of a signed index into a power of two of tiles that steps from one in range by `narrow`
    strides."""
    return bits_for(tiles) + 2


def narrow(value: Value, bits: int) -> Value:
    """A base or a stride for indices of `reach_bits`.

    From an index in range, a stride of `tiles` or more in either direction leads out of range, and
    so it does as one of at least `tiles` and less than twice as many: the sum, modulo four times
    the number of tiles, is no index. A base out of range becomes another one out of range. Whoever
    stops at the first index out of range sees no difference.
    """
    if len(value) <= bits - (not value.shape().signed):
        return value
    inside, rest = value[:bits - 2], value[bits - 2:]
    if value.shape().signed:            # near zero, the rest are copies of the sign
        return Cat(inside, rest.any(), rest.all()).as_signed()
    return Cat(inside, rest.any())
