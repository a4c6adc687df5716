"""Splits the rows of a box in DRAM into bursts, and checks each row against its window."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ...isa.config import PAGE_BYTES, Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer, Engine, Load
from ..interfaces import BURST_BEATS_BITS, FAULT, SIZE_BITS
from ..layouts import POSITION_BITS, widths_of
from ..logic import count_down, priority_mux

_WIDTHS = widths_of(Load)
COUNT_BITS, STRIDE_BITS = _WIDTHS["shape"], _WIDTHS["stride"]
MOST_BEATS = 64                         # of a burst

# A row starts at the start of a row inside the window (32 bits, unsigned) plus a stride (32 bits,
# signed), and has at most 2**28 bytes: offsets of its first and last byte fit in 34 bits.
REACH_BITS = SIZE_BITS + 2
ROW_BITS = COUNT_BITS + exact_log2(PAGE_BYTES)
CELL_BITS = 20                          # bursts a row: 64 beats of 8 bytes or more each


def box_layout(config: Config) -> data.StructLayout:
    """A box of rows in a window, and the fields that travel with it."""
    return data.StructLayout({
        "buffer": Shape.cast(Buffer),
        "planes": COUNT_BITS, "rows": COUNT_BITS, "tiles": COUNT_BITS,
        "offset": SIZE_BITS,
        "plane_stride": signed(STRIDE_BITS), "row_stride": signed(STRIDE_BITS),
        "base": config.address_bits, "size": SIZE_BITS,
        "post": len(Engine), "position": POSITION_BITS,
    })


def burst_layout(config: Config) -> data.StructLayout:
    """A burst; `beats` is one less than their number.

    last        the last of its box
    empty       the only one of an empty box: no burst
    """
    return data.StructLayout({
        "address": config.address_bits, "beats": BURST_BEATS_BITS, "last": 1, "empty": 1,
        "post": len(Engine), "position": POSITION_BITS,
    })


def set_box(m: Module, box, fields, position: Value, *, base: Value, size: Value) -> None:
    """Drive the box of a load or a store from the instruction's fields and a window of DRAM."""
    m.d.comb += [
        box.buffer.eq(fields.buffer),
        Cat(box.planes, box.rows, box.tiles).eq(Cat(fields.shape)),
        box.offset.eq(fields.offset),
        box.plane_stride.eq(fields.stride[0]), box.row_stride.eq(fields.stride[1]),
        box.base.eq(base), box.size.eq(size),
        box.post.eq(fields.post), box.position.eq(position),
    ]


class BurstWalker(Component):
    """Splits a box into bursts that neither cross 4 KiB nor leave the box's window.

    A box has planes of rows of tiles. Bursts are split at multiples of 64 beats, which divide 4
    KiB. They have whole beats: with smaller tiles, the first and the last beat of a row may hold
    bytes outside it. An empty box gives one burst marked `empty`.

    Rate: a burst a cycle while bursts are taken, also from row to row. Latency: the first burst is
    valid two cycles after its box was taken. A box is taken when none is held: at the earliest in
    the cycle after the last row of the previous one went to the splitter.

    A box is faulty when its offset or a stride is not a multiple of its tile (ALIGNMENT), or when a
    row leaves the window (ADDRESS). Rows are checked one by one, in order: bursts of the rows
    before a faulty one are issued, its own are not. A fault is raised for one cycle, that in which
    the row's first burst would be valid, and `stop` must be high in the next.

    Parameters
    ----------
    buffers : those that a box may name

    Members
    -------
    boxes : In(stream of box_layout)
        The boxes, in order. The low twelve bits of `base` are taken as zero.
    bursts : Out(stream of burst_layout)
        The bursts of each box, row by row. One that is not taken stays.
    fault : Out(FAULT)
        The current row is not allowed. Raised for one cycle.
    stop : In(1)
        Issue nothing. No box may be offered then.
    busy : Out(1)
        A box is held, or a burst of one.
    """

    def __init__(self, config: Config, buffers: tuple[Buffer, ...]):
        self.config = config
        self.buffers = buffers
        super().__init__({
            "boxes": In(stream.Signature(box_layout(config))),
            "bursts": Out(stream.Signature(burst_layout(config))),
            "fault": Out(FAULT),
            "stop": In(1),
            "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        self.beat_bits = exact_log2(self.config.bus_bytes)
        self.held = Signal()                                    # a box, at one of its rows
        self.free = Signal(init=1)          # ~held, with low fan-out
        self.box = Signal(box_layout(self.config), reset_less=True)
        self.misaligned = Signal(reset_less=True)
        self.empty = Signal(reset_less=True)
        self.row_start = Signal(signed(REACH_BITS), reset_less=True)    # its first byte
        self.more_bytes = Signal(ROW_BITS, reset_less=True)     # of a row, after its first one
        self.room = Signal(signed(REACH_BITS), reset_less=True)     # no row starts here or behind
        self.last_row = Signal()
        self.advance, self.hand_over = Signal(), Signal()
        self._cut(m)
        self._walk(m)
        m.d.comb += self.busy.eq(self.held | self.cutting)
        return m

    def _walk(self, m):
        """Advance from row to row as the splitter takes them. While no box is held, the offered one
        is loaded whether or not it is valid, so that the many registers have a simple enable."""
        offered, box = self.boxes.payload, self.box
        plane_start = Signal(signed(REACH_BITS), reset_less=True)               # of its first row
        planes_left, rows_left = (Signal(COUNT_BITS, name=name, reset_less=True)
                                  for name in ("planes_left", "rows_left"))     # this one included
        ends_plane = Signal(reset_less=True)                    # rows_left == 1
        next_start = Signal(signed(REACH_BITS))                                 # of the next plane
        more_bytes = Signal(ROW_BITS)           # undefined for rows without tiles
        more_tiles = (offered.tiles - 1)[:COUNT_BITS]
        m.d.comb += [
            self.boxes.ready.eq(self.free),
            self.last_row.eq(self.empty | (ends_plane & (planes_left == 1))),
            next_start.eq(plane_start + box.plane_stride),
            more_bytes.eq(self._by_buffer(lambda tile: Cat(Const(tile - 1, exact_log2(tile)),
                                                           more_tiles))),
        ]
        with m.If(self.boxes.valid & self.boxes.ready):
            m.d.sync += [self.held.eq(1), self.free.eq(0)]
        with m.If(self.hand_over):
            m.d.sync += [self.held.eq(~self.last_row), self.free.eq(self.last_row)]
        with m.If(~self.held | self.advance):
            m.d.sync += rows_left.eq(count_down(rows_left, ~self.held | ends_plane,
                                                Mux(self.held, box.rows, offered.rows)))
        with m.If(~self.held | (self.advance & ends_plane)):
            m.d.sync += planes_left.eq(count_down(planes_left, ~self.held, offered.planes))
        with m.If(~self.held):
            m.d.sync += [
                box.eq(offered),
                ends_plane.eq(offered.rows == 1),
                plane_start.eq(offered.offset), self.row_start.eq(offered.offset),
                self.more_bytes.eq(more_bytes), self.room.eq(offered.size - more_bytes),
                self.misaligned.eq(self._by_buffer(
                    lambda tile: (_low(offered.offset, tile) | _low(offered.plane_stride, tile)
                                  | _low(offered.row_stride, tile)) != 0)),
                self.empty.eq((offered.planes == 0) | (offered.rows == 0) | (offered.tiles == 0)),
            ]
        with m.Elif(self.advance):
            with m.If(ends_plane):
                m.d.sync += [ends_plane.eq(box.rows == 1),
                             plane_start.eq(next_start), self.row_start.eq(next_start)]
            with m.Else():
                m.d.sync += [ends_plane.eq(rows_left == 2),
                             self.row_start.eq(self.row_start + box.row_stride)]

    def _by_buffer(self, function):
        """A function of the tile size of the offered box: a multiplexer over sizes, of which there
        are fewer than buffers."""
        sizes: dict[int, list[Buffer]] = {}
        for buffer in self.buffers:
            sizes.setdefault(self.config.tile_bytes(buffer), []).append(buffer)
        return priority_mux([(self.boxes.payload.buffer.matches(*buffers), function(tile))
                      for tile, buffers in sizes.items()])

    def _cut(self, m):
        """Split the current row into bursts, unless it is faulty.

        The registers of a row `advance` whenever nothing is left to split, whether or not another
        row comes; behind a faulty row or a stop they are undefined.
        """
        here = Signal(SIZE_BITS - self.beat_bits, reset_less=True)      # next beat of the window
        grid = exact_log2(MOST_BEATS)
        last_beat = Signal(grid, reset_less=True)               # of the row, in its burst
        more = Signal(CELL_BITS, reset_less=True)               # bursts after this one
        ends_row = Signal(reset_less=True)                      # more == 0
        base = Signal(self.config.address_bits, reset_less=True)
        final = Signal(reset_less=True)
        no_bytes = Signal(reset_less=True)
        cause = Signal(Fault, reset_less=True)
        burst = self.bursts.payload
        post, position = (Signal.like(each, name=name, reset_less=True) for name, each
                          in (("post", burst.post), ("position", burst.position)))
        self.cutting = Signal()                         # a row is being split
        sound = Signal()

        page = exact_log2(PAGE_BYTES)
        in_page = page - self.beat_bits
        m.d.comb += [
            sound.eq(cause == Fault.NONE),
            self.fault.cause.eq(Mux(self.cutting & ~self.stop, cause, Fault.NONE)),
            self.fault.position.eq(position),
            self.bursts.valid.eq(self.cutting & sound & ~self.stop),
            burst.address.eq(Cat(Const(0, self.beat_bits), here[:in_page],
                                 (base[page:] + here[in_page:])[:len(base) - page])),
            burst.beats.eq(Mux(ends_row, last_beat, MOST_BEATS - 1) - here[:grid]),
            burst.last.eq(final & ends_row), burst.empty.eq(no_bytes),
            burst.post.eq(post), burst.position.eq(position),
            self.advance.eq(~self.cutting | (self.bursts.ready & ends_row)),
            self.hand_over.eq(self.held & ~self.stop & (~self.cutting | sound) & self.advance),
        ]
        with m.If(self.bursts.valid & self.bursts.ready):
            m.d.sync += self.cutting.eq(~ends_row)
        with m.If(self.hand_over):
            m.d.sync += self.cutting.eq(1)
        with m.If(self.advance):
            start = Value.cast(self.row_start)[self.beat_bits:]
            # The last byte, counted from the start of the first burst's block.
            last_byte = Value.cast(self.row_start)[:self.beat_bits + grid] + self.more_bytes
            end = last_byte[self.beat_bits:]
            m.d.sync += [
                here.eq(start), last_beat.eq(Mux(self.empty, start[:grid], end[:grid])),
                more.eq(end[grid:]), ends_row.eq(self.empty | (end[grid:] == 0)),
                cause.eq(self._find_fault()),
                base.eq(self.box.base),
                final.eq(self.last_row), no_bytes.eq(self.empty),
                post.eq(self.box.post), position.eq(self.box.position),
            ]
        with m.Elif(self.bursts.ready):
            m.d.sync += [here.eq((here[grid:] + 1) << grid), more.eq(more - 1),
                         ends_row.eq(more == 1)]

    def _find_fault(self):
        """The fault of the current row, if any."""
        outside = (self.row_start < 0) | (self.row_start >= self.room)
        return Mux(self.misaligned, Fault.ALIGNMENT,
                   Mux(outside & ~self.empty, Fault.ADDRESS, Fault.NONE))


def _low(value: Value, tile: int) -> Value:
    """A byte count modulo the size of a tile."""
    return value.as_unsigned()[:exact_log2(tile)] if tile > 1 else Const(0)
