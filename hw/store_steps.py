"""The steps of a store: every read of the scratchpad and where it goes in a beat, in order."""

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import INDEX_BITS, Config
from ..isa.instructions import Buffer, Store
from .interfaces import commands
from .layouts import POSITION_BITS, unpack
from .packing import Packing
from .rows import COUNT_BITS

BUFFERS = (Buffer.OUT, Buffer.ACC)


def step_layout(packing: Packing) -> data.StructLayout:
    """One step towards a beat.

    read            read the tile; otherwise its parts are already at hand
    ends_beat       the beat is complete after this
    outside         the scratchpad has no such tile
    empty           the only step of a store that writes nothing
    last            the last step of its store

    The other fields are those of the packing and of the instruction.
    """
    return data.StructLayout({
        "buffer": Shape.cast(Buffer), "read": 1, "empty": 1, "last": 1, "outside": 1,
        "index": INDEX_BITS, "ends_beat": 1,
        **{name: getattr(packing, name).shape()
           for name in ("part", "alone", "word_lane", "strobe", "bytes")},
        "position": POSITION_BITS,
    })


class StoreSteps(Component):
    """Walks the tiles of stores, planes of rows of tiles, in the order in which DRAM gets them.

    Rate: a step a cycle while they are taken, one cycle without between stores. Latency: the
    first step is valid in the cycle after its store came to the head of the stream; the store is
    taken with its last step. One without tiles gives one step marked `empty`.

    Indices are exact as long as steps that are `outside` are not taken.

    Members
    -------
    stores : In(commands)
    steps : Out(stream of step_layout)
    """

    def __init__(self, config: Config):
        self.config = config
        self.packing = Packing(config, BUFFERS)
        super().__init__({
            "stores": In(commands),
            "steps": Out(stream.Signature(step_layout(self.packing))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.packing = self.packing
        self.fields = unpack(Store, self.stores.payload.word)
        self.begun = Signal()                           # the counters belong to this store
        self.begins = Signal()
        self.moved = Signal()
        m.d.comb += [
            self.begins.eq(self.stores.valid & ~self.begun),
            self.steps.valid.eq(self.stores.valid & self.begun),
            self.moved.eq(self.steps.valid & self.steps.ready),
            self.stores.ready.eq(self.moved & self.steps.payload.last),
        ]
        with m.If(self.begins):
            m.d.sync += self.begun.eq(1)
        with m.If(self.stores.ready):
            m.d.sync += self.begun.eq(0)
        self._place(m, *self._count(m))
        self._describe(m)
        return m

    def _count(self, m):
        """Count tiles, rows, planes. Returns whether a step ends a row, and a plane."""
        planes, rows, tiles = self.fields.shape
        self.tiles_left, rows_left, planes_left = (
            Signal(COUNT_BITS, name=f"{name}_left", reset_less=True)    # this one included
            for name in ("tiles", "rows", "planes"))
        row_ends = Signal()
        plane_ends = Signal()
        self.at_end = Signal()
        m.d.comb += [
            row_ends.eq(self.packing.ends_row),
            plane_ends.eq(row_ends & (rows_left == 1)),
            self.at_end.eq(plane_ends & (planes_left == 1)),
        ]
        with m.If(self.moved):
            m.d.sync += [
                self.tiles_left.eq(Mux(row_ends, tiles, self.tiles_left - self.packing.count)),
                rows_left.eq(Mux(plane_ends, rows, rows_left - row_ends)),
                planes_left.eq(planes_left - plane_ends),
            ]
        with m.If(self.begins):
            m.d.sync += [self.tiles_left.eq(tiles), rows_left.eq(rows), planes_left.eq(planes)]
        return row_ends, plane_ends

    def _place(self, m, row_ends, plane_ends):
        """Which tile is next, and where in its beat it goes."""
        packing, fields = self.packing, self.fields
        plane_index, row_index, index = (
            Signal(INDEX_BITS + 1, name=name, reset_less=True)
            for name in ("plane_index", "row_index", "index"))
        plane_place, row_place, place = (
            Signal(packing.place_bits, name=name, reset_less=True)
            for name in ("plane_place", "row_place", "place"))
        part = Signal.like(packing.part, name="part", reset_less=True)
        m.d.comb += [packing.index.eq(index), packing.place.eq(place), packing.part.eq(part)]
        for plane, row, now, start, steps, after in (
                (plane_index, row_index, index, fields.sram, fields.sram_pitch,
                 index + packing.count),
                (plane_place, row_place, place, fields.offset, fields.stride,
                 packing.next_place)):
            with m.If(self.moved):
                m.d.sync += now.eq(after)
                with m.If(plane_ends):
                    m.d.sync += [each.eq(plane + steps[0]) for each in (plane, row, now)]
                with m.Elif(row_ends):
                    m.d.sync += [each.eq(row + steps[1]) for each in (row, now)]
            with m.If(self.begins):
                m.d.sync += [each.eq(start) for each in (plane, row, now)]
        with m.If(self.moved):
            m.d.sync += part.eq(packing.next_part)
        with m.If(self.begins):
            m.d.sync += part.eq(0)

    def _describe(self, m):
        fields = self.fields
        planes, rows, tiles = fields.shape
        packing, step = self.packing, self.steps.payload
        m.d.comb += [
            packing.buffer.eq(fields.buffer), packing.left.eq(self.tiles_left),
            step.buffer.eq(fields.buffer), step.position.eq(self.stores.payload.position),
            step.index.eq(packing.index),
            *(step[name].eq(getattr(packing, name))
              for name in ("part", "alone", "word_lane", "strobe", "bytes")),
            step.empty.eq((planes == 0) | (rows == 0) | (tiles == 0)),
            step.read.eq((packing.part == 0) & ~step.empty),
            step.ends_beat.eq(packing.ends_beat & ~step.empty),
            step.outside.eq(packing.outside & ~step.empty),
            step.last.eq(step.empty | self.at_end),
        ]
