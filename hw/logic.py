"""Small pieces of logic that several units use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

Kind = TypeVar("Kind")
Entry = TypeVar("Entry")


def require_entries(kinds: Iterable[Kind], table: Mapping[Kind, Entry]) -> dict[Kind, Entry]:
    """The entries of a table in the order of `kinds`; each kind must have one.

    For hardware that switches on the members of an enum: a member that is added to the enum and not
    to the hardware then fails at elaboration, instead of silently behaving like another one.
    """
    table = dict(table)
    missing = [str(each) if isinstance(each, type) else repr(each)
               for each in kinds if each not in table]
    if missing:
        raise NotImplementedError(f"there is no hardware for {', '.join(missing)}")
    return {kind: table[kind] for kind in kinds}


def is_among(value: Value, kinds: Iterable[Kind], chosen: Mapping[Kind, bool]) -> Value:
    """Whether a value is one of the chosen kinds; `chosen` must have an entry for each kind."""
    return value.matches(*(kind for kind, is_chosen in require_entries(kinds, chosen).items()
                           if is_chosen))


def exponent(power: int) -> int:
    """The exponent of a power of two."""
    return power.bit_length() - 1


def select(values: Sequence[Value], number: Value) -> Value:
    """Select one of 2**n values by a tree of multiplexers, which takes the least logic."""
    for bit in number[:exponent(len(values))]:
        values = [Mux(bit, odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def priority_mux(claims: Sequence[tuple[Value, Value]]) -> Value:
    """The value of the first (condition, value) that holds; when none does, the last value."""
    *claims, (_, value) = claims
    for holds, other in reversed(claims):
        value = Mux(holds, other, value)
    return value


def step_by_one(count: Value, up: Value) -> Value:
    """count + 1 or count - 1, modulo the powers of two; a choice between the two would take two
    adders."""
    return (count + Cat(Const(1, 1), (~up).replicate(len(count) - 1)))[:len(count)]


def reach_bits(tiles: int) -> int:
    """Bits of a signed index into a power of two of tiles that steps from one in range by `narrow`
    strides."""
    return exponent(tiles) + 2


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


def count_down(count: Value, loads: Value, start: Value) -> Value:
    """`start` if a counter `loads`, else one less: with the choice ahead of the adder, where FPGAs
    have room for it in the carry chain."""
    return (Mux(loads, start, count) - ~loads)[:len(count)]


def register(m: Module, value: Value, name: str) -> Signal:
    """The value one cycle later."""
    later = Signal.like(value, name=name, reset_less=True)
    m.d.sync += later.eq(value)
    return later


def delay_line(m: Module, value: Value, cycles: int, name: str) -> Value:
    """Delay a value by some cycles through a memory, which is smaller than registers for many bits
    and cycles. Undefined until then."""
    m.submodules[name] = memory = Memory(shape=len(value), depth=cycles, init=[])
    written, read = memory.write_port(), memory.read_port(domain="comb")
    place = Signal(range(cycles), name=f"{name}_place")
    m.d.sync += place.eq(Mux(place == cycles - 1, 0, place + 1))
    m.d.comb += [written.addr.eq(place), written.data.eq(value), written.en.eq(1),
                 read.addr.eq(place)]       # overwritten at the end of this cycle
    return read.data
