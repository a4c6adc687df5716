"""Register slices and FIFOs whose outputs on both sides come from registers."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from .logic import step_by_one


class RegisterSlice(Component):
    """Breaks all combinational paths of a stream, forward and backward.

    That takes two places: when the consumer stalls, the producer learns of it one cycle later, and
    the item sent until then needs a place.

        put ──┬────────► front ──► take
              └─► back ──┘

    Rate: one item a cycle. Latency: an item put in cycle t can be taken in t + 1.

    Parameters
    ----------
    shape : of an item

    Members
    -------
    put : In(stream of shape)
        Items that enter. Not ready while both places are in use.
    take : Out(stream of shape)
        The oldest item. It stays until it is taken.
    vacant : Out(1)
        There is no item. Has its own register, for distant readers.
    """

    def __init__(self, shape: ShapeLike):
        self.shape = shape
        super().__init__({"put": In(stream.Signature(shape)), "take": Out(stream.Signature(shape)),
                          "vacant": Out(1)})

    def elaborate(self, platform):
        m = Module()
        front, back = (Signal(self.shape, name=name, reset_less=True)
                       for name in ("front", "back"))
        held, waiting = Signal(), Signal()          # the front is in use; so is the back
        room = Signal(init=1)       # ~waiting: keeps the load of a whole item off `ready`
        m.d.comb += [self.put.ready.eq(room), self.take.valid.eq(held),
                     self.take.payload.eq(front)]
        with m.If(~waiting):
            m.d.sync += back.eq(self.put.payload)
        with m.If(self.take.ready | ~held):
            m.d.sync += Value.cast(front).eq(Mux(waiting, back, self.put.payload))
        # Whole items at once: separate enables or resets would add a net to the path.
        vacant = Signal(init=1)
        will_hold = waiting | self.put.valid | (held & ~self.take.ready)
        m.d.comb += self.vacant.eq(vacant)
        m.d.sync += [
            held.eq(will_hold), vacant.eq(~will_hold),
            waiting.eq(held & ~self.take.ready & (waiting | self.put.valid)),
            room.eq(self.take.ready | ~held | (room & ~self.put.valid)),
        ]
        return m


class RegisteredFifo(Component):
    """A FIFO with its head in a register.

    Rate: one in and one out a cycle. Latency: an item that enters an empty FIFO can leave in the
    next cycle.

    Parameters
    ----------
    shape : of an item
    depth : places, two or more
    reserved : the producer reserves a place for every item, so `put` is always ready and does not
        depend on `take`

    Members
    -------
    put : In(stream of shape)
        Items that enter. Not ready while all places are in use.
    take : Out(stream of shape)
        The oldest item. It stays until it is taken.
    coming : Out(shape)
        If the oldest item is taken now, or there is none: the oldest one of the next cycle, if
        there is one then.
    place : Out(range(depth))
        The number of that item since reset, modulo the number of places, which is `depth` if these
        are reserved.
    renews : Out(1)
        The oldest item is taken now, or there is none.
    """

    def __init__(self, shape: ShapeLike, depth: int, *, reserved: bool = False):
        self.shape, self.depth, self.reserved = shape, depth, reserved
        super().__init__({"put": In(stream.Signature(shape)), "take": Out(stream.Signature(shape)),
                          "coming": Out(shape), "place": Out(range(depth)), "renews": Out(1)})

    def elaborate(self, platform):
        m = Module()
        put, take = self.put, self.take
        width = Shape.cast(self.shape).width
        # With reserved places one is always free, and can be written in every cycle.
        places = self.depth if self.reserved else self.depth - 1
        m.submodules.storage = storage = Memory(shape=width, depth=places, init=[])
        written, read = storage.write_port(), storage.read_port(domain="comb")
        produce, consume, behind = (Signal(range(size), name=name) for size, name in (
            (places, "produce"), (places, "consume"),
            (self.depth, "behind")))                # items behind the head
        head = Signal(width, reset_less=True)
        held = Signal()                             # there is a head; otherwise, nothing behind it
        vacant = Signal(init=1)                     # ~held, for what loads with the head
        some = Signal()                             # behind != 0
        enters = Signal()                           # an item
        m.d.comb += [
            take.valid.eq(held), Value.cast(take.payload).eq(head),
            enters.eq(put.valid & put.ready),
            # Written unconditionally: `valid` arrives later than the address, and the place is
            # free.
            written.addr.eq(produce), written.data.eq(put.payload),
            read.addr.eq(consume), self.place.eq(consume),
            Value.cast(self.coming).eq(Mux(some, read.data, put.payload)),
        ]
        # An item gets a place even if it becomes the head at once: `take.ready` may arrive late and
        # must not decide where items go.
        with m.If(enters):
            m.d.sync += produce.eq(Mux(produce == places - 1, 0, produce + 1))
        with m.If((take.ready & (some | enters)) | (enters & ~held)):
            m.d.sync += consume.eq(Mux(consume == places - 1, 0, consume + 1))
        with m.If(held & Mux(take.ready, some & ~enters, enters)):
            m.d.sync += behind.eq(step_by_one(behind, enters))
        keeps = (held & ~take.ready) | some | enters
        m.d.sync += [
            held.eq(keeps), vacant.eq(~keeps),
            some.eq(held & Mux(take.ready, some & ((behind != 1) | enters), some | enters)),
        ]
        m.d.comb += self.renews.eq(take.ready | vacant)
        with m.If(self.renews):
            m.d.sync += head.eq(self.coming)
        if self.reserved:
            m.d.comb += [put.ready.eq(1), written.en.eq(1)]
            return m
        room = Signal(init=1)                       # behind != places: for `ready`, ...
        full = Signal()                             # ... and its inverse for the write enables
        fills = enters & (behind == places - 1)
        m.d.comb += [put.ready.eq(room), written.en.eq(~full)]
        m.d.sync += [room.eq(take.ready | ~held | (room & ~fills)),
                     full.eq(held & ~take.ready & (full | fills))]
        return m


class StagedFifo(Component):
    """A FIFO with an input register: items may arrive late in the cycle.

        put ──► places ──► head ──► take

    With two places these are a register and the head, or a memory with registered reads, which may
    be block RAM.

    Rate: one in and one out a cycle. Latency: an item that enters an empty FIFO can leave two
    cycles later.

    Parameters
    ----------
    shape : of an item
    depth : places, two or more, including the input register
    attributes : of the memory, if two places are to be a memory

    Members
    -------
    put : In(stream of shape)
        Items that enter. Not ready while all places are in use.
    take : Out(stream of shape)
        The oldest item. It stays until it is taken.
    coming : Out(shape)
        As in `RegisteredFifo`.
    empty : Out(1)
        There is no item.
    """

    def __init__(self, shape: ShapeLike, depth: int, attributes: Mapping[str, Any] | None = None):
        self.shape, self.depth, self.attributes = shape, depth, attributes
        super().__init__({"put": In(stream.Signature(shape)), "take": Out(stream.Signature(shape)),
                          "coming": Out(shape), "empty": Out(1)})

    def elaborate(self, platform):
        m = Module()
        put, take = self.put, self.take
        held = Signal()                             # an item has just entered
        count = Signal(range(self.depth + 1))
        room = Signal(init=1)                       # count != depth
        enters, leaves = Signal(name="enters"), Signal(name="leaves")
        m.d.comb += [
            put.ready.eq(room), enters.eq(put.valid & room), leaves.eq(take.valid & take.ready),
            self.empty.eq(~held & ~take.valid),
        ]
        m.d.sync += room.eq(leaves | (room & ~(enters & (count == self.depth - 1))))
        with m.If(enters ^ leaves):
            m.d.sync += count.eq(step_by_one(count, enters))
        if self.depth == 2:
            self._pass_on(m, held, enters, room)
            return m
        m.d.sync += held.eq(enters)
        self._line_up(m, held, enters)
        return m

    def _line_up(self, m, held, enters):
        """Items enter the memory at once, and the queue one cycle later."""
        take = self.take
        m.submodules.line = line = RegisteredFifo(1, self.depth, reserved=True)
        m.submodules.places = places = Memory(shape=Shape.cast(self.shape).width, depth=self.depth,
                                              init=[])
        written, read = places.write_port(), places.read_port(domain="comb")
        head = Signal(self.shape, reset_less=True)
        arriving = Signal(range(self.depth))
        m.d.comb += [
            # Written unconditionally: the oldest item no longer needs its place.
            written.addr.eq(arriving), written.data.eq(self.put.payload), written.en.eq(1),
            read.addr.eq(line.place), Value.cast(self.coming).eq(read.data),
            line.put.valid.eq(held), line.take.ready.eq(take.ready),
            take.valid.eq(line.take.valid), take.payload.eq(head),
        ]
        with m.If(enters):
            m.d.sync += arriving.eq(Mux(arriving == self.depth - 1, 0, arriving + 1))
        with m.If(line.renews):
            m.d.sync += head.eq(self.coming)

    def _pass_on(self, m, held, enters, room):
        """One item waits in the input register; there is no room for others then."""
        take = self.take
        entering = Signal(self.shape, reset_less=True)
        moves = Signal()                            # to the head
        m.d.comb += [self.coming.eq(entering), moves.eq(take.ready | ~take.valid)]
        with m.If(room):
            m.d.sync += entering.eq(self.put.payload)
        if self.attributes:
            self._remember(m, held, enters, moves)
        else:
            head = Signal(self.shape, reset_less=True)
            m.d.comb += take.payload.eq(head)
            with m.If(moves):
                m.d.sync += head.eq(entering)
        m.d.sync += [take.valid.eq(held | (take.valid & ~take.ready)),
                     held.eq(enters | (held & ~moves))]

    def _remember(self, m, held, enters, moves):
        """The same with a memory: of `entering`, only what `coming` needs is left. No item waits
        where the next one enters, so that place can be written in every cycle."""
        m.submodules.places = places = Memory(shape=Shape.cast(self.shape).width, depth=2, init=[],
                                              attrs=self.attributes)
        written, read = places.write_port(), places.read_port()
        produce, consume = Signal(name="produce"), Signal(name="consume")
        m.d.comb += [written.addr.eq(produce), written.data.eq(self.put.payload), written.en.eq(1),
                     read.addr.eq(consume), read.en.eq(moves),
                     Value.cast(self.take.payload).eq(read.data)]
        with m.If(enters):
            m.d.sync += produce.eq(~produce)
        with m.If(moves & held):
            m.d.sync += consume.eq(~consume)
