"""The steps of a load: every write of the scratchpad, border and data, in order."""

from enum import IntEnum

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import INDEX_BITS, Config
from ..isa.instructions import Buffer, Engine, Load
from .interfaces import commands
from .layouts import POSITION_BITS, unpack
from .packing import Packing
from .rows import COUNT_BITS

BUFFERS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8)


class Section(IntEnum):
    """A plane from top to bottom: rows of border, rows with data, rows of border."""

    TOP = 0
    MIDDLE = 1
    BOTTOM = 2


class Run(IntEnum):
    """A row from left to right. In a row of border, the body is border too."""

    LEFT = 0
    BODY = 1
    RIGHT = 2


def step_layout(packing: Packing) -> data.StructLayout:
    """One write.

    data            from a beat; otherwise padding
    ends_beat       the beat is not needed after this
    outside         the scratchpad has no such tile
    empty           the only step of a load that writes nothing
    last            the last step of its load

    The other fields are those of the packing and of the instruction.
    """
    return data.StructLayout({
        "buffer": Shape.cast(Buffer), "data": 1, "empty": 1, "last": 1, "outside": 1,
        "index": INDEX_BITS, "ends_beat": 1, "pad_value": 8,
        **{name: getattr(packing, name).shape()
           for name in ("part", "alone", "lane", "word_lanes", "bytes")},
        "post": len(Engine), "position": POSITION_BITS,
    })


class LoadSteps(Component):
    """Walks the tiles of loads as they lie in the scratchpad.

            left       x       right
          ┌──────┬───────────┬───────┐
          │         top              │      a plane: rows of left + x + right tiles,
          ├──────┬───────────┬───────┤      one after the other in the scratchpad
          │ pad  │   data    │  pad  │ y
          ├──────┴───────────┴───────┤
          │        bottom            │
          └──────────────────────────┘

    Rate: a step a cycle while they are taken, one cycle without between loads. Latency: the first
    step is valid in the cycle after its load came to the head of the stream; the load is taken
    with its last step. One that writes nothing gives one step marked `empty`.

    Indices are exact as long as steps that are `outside` are not taken.

    Members
    -------
    loads : In(commands)
    steps : Out(stream of step_layout)
    """

    def __init__(self, config: Config):
        self.config = config
        self.packing = Packing(config, BUFFERS)
        super().__init__({
            "loads": In(commands),
            "steps": Out(stream.Signature(step_layout(self.packing))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.packing = self.packing
        self.fields = unpack(Load, self.loads.payload.word)
        self.begun = Signal()                           # the counters belong to this load
        self.begins = Signal()
        self.moved = Signal()
        m.d.comb += [
            self.begins.eq(self.loads.valid & ~self.begun),
            self.steps.valid.eq(self.loads.valid & self.begun),
            self.moved.eq(self.steps.valid & self.steps.ready),
            self.loads.ready.eq(self.moved & self.steps.payload.last),
        ]
        with m.If(self.begins):
            m.d.sync += self.begun.eq(1)
        with m.If(self.loads.ready):
            m.d.sync += self.begun.eq(0)
        self._place(m, *self._count(m))
        self._describe(m)
        return m

    def _count(self, m):
        """Count tiles, rows, planes. Returns whether a step ends a row with data, and a plane."""
        planes, rows, tiles = self.fields.shape
        top, bottom, left, right = self.fields.pad
        self.section = Signal(Section, reset_less=True)
        self.run = Signal(Run, reset_less=True)
        self.tiles_left, self.rows_left, self.planes_left = (
            Signal(COUNT_BITS, name=f"{name}_left", reset_less=True)    # this one included
            for name in ("tiles", "rows", "planes"))
        self.at_end = Signal()
        heights = {Section.TOP: top, Section.MIDDLE: rows, Section.BOTTOM: bottom}
        widths = {Run.LEFT: left, Run.BODY: tiles, Run.RIGHT: right}

        # What the step at hand ends, if it is taken.
        run_ends, row_ends, section_ends, plane_ends = (
            Signal(name=name) for name in ("run_ends", "row_ends", "section_ends", "plane_ends"))
        m.d.comb += [
            run_ends.eq(self.packing.ends_row),
            row_ends.eq(run_ends & (self.run == _last(widths))),
            section_ends.eq(row_ends & (self.rows_left == 1)),
            plane_ends.eq(section_ends & (self.section == _last(heights))),
            self.at_end.eq(plane_ends & (self.planes_left == 1)),
        ]
        next_run = Signal(Run)
        next_section = Signal(Section)
        m.d.comb += [
            next_run.eq(Mux(self.begins | row_ends, _first(widths), _after(self.run, widths))),
            next_section.eq(Mux(self.begins | plane_ends, _first(heights),
                                _after(self.section, heights))),
        ]
        with m.If(self.moved):
            m.d.sync += [
                self.tiles_left.eq(self.tiles_left - self.packing.count),
                self.rows_left.eq(self.rows_left - row_ends),
                self.planes_left.eq(self.planes_left - plane_ends),
            ]
        with m.If(self.begins | (self.moved & run_ends)):
            m.d.sync += [self.run.eq(next_run), self.tiles_left.eq(_of(widths, next_run))]
        with m.If(self.begins | (self.moved & section_ends)):
            m.d.sync += [self.section.eq(next_section),
                         self.rows_left.eq(_of(heights, next_section))]
        with m.If(self.begins):
            m.d.sync += self.planes_left.eq(planes)
        return row_ends & (self.section == Section.MIDDLE), plane_ends

    def _place(self, m, data_row_ends, plane_ends):
        """Where the next tile goes, and where in its beat the data for it start."""
        packing, fields = self.packing, self.fields
        plane_index, index = (Signal(INDEX_BITS + 1, name=name, reset_less=True)
                              for name in ("plane_index", "index"))
        plane_place, row_place, place = (
            Signal(packing.place_bits, name=name, reset_less=True)
            for name in ("plane_place", "row_place", "place"))
        part = Signal.like(packing.part, name="part", reset_less=True)
        next_plane, next_row = plane_place + fields.stride[0], row_place + fields.stride[1]
        m.d.comb += [packing.index.eq(index), packing.place.eq(place), packing.part.eq(part)]
        with m.If(self.moved):
            m.d.sync += [index.eq(index + packing.count), place.eq(packing.next_place),
                         part.eq(packing.next_part)]
        with m.If(self.moved & data_row_ends):
            m.d.sync += [row_place.eq(next_row), place.eq(next_row)]
        with m.If(self.moved & plane_ends):
            m.d.sync += [
                plane_index.eq(plane_index + fields.sram_pitch),
                index.eq(plane_index + fields.sram_pitch),
                plane_place.eq(next_plane), row_place.eq(next_plane), place.eq(next_plane),
            ]
        with m.If(self.begins):
            m.d.sync += [plane_index.eq(fields.sram), index.eq(fields.sram), part.eq(0),
                         *(each.eq(fields.offset) for each in (plane_place, row_place, place))]

    def _describe(self, m):
        fields = self.fields
        planes, rows, tiles = fields.shape
        top, bottom, left, right = fields.pad
        packing, step = self.packing, self.steps.payload
        is_data = (self.section == Section.MIDDLE) & (self.run == Run.BODY)
        m.d.comb += [
            packing.buffer.eq(fields.buffer), packing.padding.eq(~is_data),
            packing.left.eq(self.tiles_left),
            step.buffer.eq(fields.buffer), step.pad_value.eq(fields.pad_value),
            step.post.eq(fields.post), step.position.eq(self.loads.payload.position),
            step.index.eq(packing.index),
            *(step[name].eq(getattr(packing, name))
              for name in ("part", "alone", "lane", "word_lanes", "bytes")),
            step.empty.eq((planes == 0) | (top | rows | bottom == 0) | (left | tiles | right == 0)),
            step.data.eq(is_data & ~step.empty),
            step.ends_beat.eq(packing.ends_beat), step.outside.eq(packing.outside & ~step.empty),
            step.last.eq(step.empty | self.at_end),
        ]


def _first(sizes):
    """The first of three parts that is not empty; the last one if all are."""
    (first, size), (middle, middle_size), (last, _) = sizes.items()
    return Mux(size != 0, first, Mux(middle_size != 0, middle, last))


def _last(sizes):
    (first, _), (middle, middle_size), (last, size) = sizes.items()
    return Mux(size != 0, last, Mux(middle_size != 0, middle, first))


def _after(part, sizes):
    """The part that follows, given that one does."""
    (first, _), (middle, middle_size), (last, _) = sizes.items()
    return Mux((part == first) & (middle_size != 0), middle, last)


def _of(sizes, part):
    """The size of a part."""
    (first, size), (middle, middle_size), (_, last_size) = sizes.items()
    return Mux(part == first, size, Mux(part == middle, middle_size, last_size))
