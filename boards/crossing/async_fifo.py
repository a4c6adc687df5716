"""A queue between two clocks that know nothing of each other."""

from collections.abc import Callable

from amaranth.hdl import Elaboratable, Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

STAGES = 2              # registers of a synchronizer: the second one settles


def synchronize(i: Value, o: Value, domain: str) -> Elaboratable:
    """Registers of `domain` on the way from `i` to `o`. What crosses must change one bit at a time,
    or be stable while somebody looks."""
    return FFSynchronizer(i, o, o_domain=domain, stages=STAGES)


def gray(number: Value) -> Value:
    """The Gray code of a number: that of the next one differs in one bit."""
    return number ^ number[1:]


class AsyncFifo(Component):
    """Items enter with one clock and leave, in order, with another.

        put ──▶ storage ──▶ head ──▶ take
                produce ──▶ synchronizer ──▶ is there an item?
        is there room? ◀── synchronizer ◀── consume

    Pointers have one bit more than an address and cross as Gray codes, straight from registers: a
    pointer that is caught while it changes is the old one or the new one. What the other side sees
    is late, so it sees fewer items, or less room, than there are, and never more.

    Rate: one in and one out a cycle of either clock, with eight places or more. Latency: an item
    can leave four or five cycles of the taker's clock after it entered, of which one is the head's.
    Both sides must be in reset together, for three cycles of the slower clock or more.

    Parameters
    ----------
    shape : of an item
    depth : places, a power of two, not counting the head
    put_domain, take_domain : the clocks of both ends
    synchronizer : makes what a pointer crosses in; proofs put a model of metastability there

    Members
    -------
    put : In(stream of shape)
    take : Out(stream of shape)
        From registers.
    """

    def __init__(self, shape: ShapeLike, depth: int, *, put_domain: str, take_domain: str,
                 synchronizer: Callable[[Value, Value, str], Elaboratable] = synchronize):
        self.shape, self.depth = shape, depth
        self.put_domain, self.take_domain = put_domain, take_domain
        self.synchronizer = synchronizer
        self.bits = exact_log2(depth) + 1       # of a pointer
        super().__init__({"put": In(stream.Signature(shape)), "take": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = storage = Memory(shape=Shape.cast(self.shape).width,
                                                depth=self.depth, init=[])
        # Nobody looks at a place that is written: its number has to cross first.
        self.written = storage.write_port(domain=self.put_domain)
        self.read = storage.read_port(domain="comb")
        self.produced, self.consumed = (Signal(self.bits, name=name)    # Gray codes
                                        for name in ("produced", "consumed"))
        self._enter(m)
        self._leave(m)
        return m

    def _enter(self, m):
        """Items get a place while there is one, as far as is known here."""
        produce, consumed_seen = Signal(self.bits, name="produce"), Signal(self.bits)
        following, enters = Signal(self.bits), Signal(name="enters")
        m.submodules.to_putter = self.synchronizer(self.consumed, consumed_seen, self.put_domain)
        # Full: the pointers are `depth` apart, which changes both of the upper bits of a Gray code.
        full = self.produced == consumed_seen ^ (0b11 << self.bits - 2)
        m.d.comb += [
            self.put.ready.eq(~full), enters.eq(self.put.valid & ~full),
            self.written.addr.eq(produce), self.written.en.eq(enters),
            self.written.data.eq(self.put.payload), following.eq(produce + 1),
        ]
        with m.If(enters):
            m.d[self.put_domain] += [produce.eq(following),
                                     self.produced.eq(gray(following))]

    def _leave(self, m):
        """The head takes the next item whenever it is free."""
        consume, produced_seen = Signal(self.bits, name="consume"), Signal(self.bits)
        following, moves = Signal(self.bits), Signal(name="moves")
        head, held = Signal(self.shape, name="head", reset_less=True), Signal(name="held")
        m.submodules.to_taker = self.synchronizer(self.produced, produced_seen, self.take_domain)
        m.d.comb += [
            moves.eq((self.consumed != produced_seen) & (~held | self.take.ready)),
            self.read.addr.eq(consume), following.eq(consume + 1),
            self.take.valid.eq(held), self.take.payload.eq(head),
        ]
        with m.If(moves):
            m.d[self.take_domain] += [
                Value.cast(head).eq(self.read.data), held.eq(1), consume.eq(following),
                self.consumed.eq(gray(following))]
        with m.Elif(self.take.ready):
            m.d[self.take_domain] += held.eq(0)
