"""The steps of a load: every write of the scratchpad, border and data, in order."""

from enum import IntEnum

from amaranth.hdl import Mux, Signal

from ..isa.config import Config
from ..isa.instructions import Engine, Load
from .layouts import widths_of
from .tile_steps import TileSteps


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


class LoadSteps(TileSteps):
    """Walks the tiles of loads as they lie in the scratchpad: one step is one write.

            left       x       right
          ┌──────┬───────────┬───────┐
          │         top              │      a plane: rows of left + x + right tiles,
          ├──────┬───────────┬───────┤      one after the other in the scratchpad
          │ pad  │   data    │  pad  │ y
          ├──────┴───────────┴───────┤
          │        bottom            │
          └──────────────────────────┘

    For rate, latency and back-pressure see `TileSteps`. A step has these fields of its own:

        data        what is written comes from a beat; otherwise it is padding
        pad_value   the padding
        post        engines that get a token when the load is complete

    Members
    -------
    commands : In(stream of COMMAND)
        The loads, in order. The one at the head must stay until it is taken, with its last step.
    steps : Out(stream of tile_steps.step_layout)
        Every write of each load, border and data, in the order of its tiles.
    """

    def __init__(self, config: Config):
        super().__init__(config, Load, carried=("part", "alone", "lane", "word_lanes", "bytes"),
                         own={"data": 1, "pad_value": widths_of(Load)["pad_value"],
                              "post": len(Engine)})

    def _count_rows(self, m):
        _, rows, tiles = self.fields.shape
        top, bottom, left, right = self.fields.pad
        self.section = Signal(Section, reset_less=True)
        self.run = Signal(Run, reset_less=True)
        heights = {Section.TOP: top, Section.MIDDLE: rows, Section.BOTTOM: bottom}
        widths = {Run.LEFT: left, Run.BODY: tiles, Run.RIGHT: right}

        # What the step at hand ends when it is taken. DRAM knows only the rows with data.
        run_ends, line_ends, section_ends = (
            Signal(name=name) for name in ("run_ends", "line_ends", "section_ends"))
        m.d.comb += [
            run_ends.eq(self.packing.ends_row),
            line_ends.eq(run_ends & (self.run == _last(widths))),
            section_ends.eq(line_ends & (self.rows_left == 1)),
            self.row_ends.eq(line_ends & (self.section == Section.MIDDLE)),
            self.plane_ends.eq(section_ends & (self.section == _last(heights))),
        ]
        next_run, next_section = Signal(Run), Signal(Section)
        m.d.comb += [
            next_run.eq(Mux(self.begins | line_ends, _first(widths), _after(self.run, widths))),
            next_section.eq(Mux(self.begins | self.plane_ends, _first(heights),
                                _after(self.section, heights))),
        ]
        with m.If(self.moved):
            m.d.sync += [self.tiles_left.eq(self.tiles_left - self.packing.count),
                         self.rows_left.eq(self.rows_left - line_ends)]
        with m.If(self.begins | (self.moved & run_ends)):
            m.d.sync += [self.run.eq(next_run), self.tiles_left.eq(_of(widths, next_run))]
        with m.If(self.begins | (self.moved & section_ends)):
            m.d.sync += [self.section.eq(next_section),
                         self.rows_left.eq(_of(heights, next_section))]

    def _pitches(self):
        return self.fields.sram_pitch, None

    def _describe_own(self, m):
        fields, step = self.fields, self.steps.payload
        planes, rows, tiles = fields.shape
        top, bottom, left, right = fields.pad
        is_data = (self.section == Section.MIDDLE) & (self.run == Run.BODY)
        m.d.comb += [
            self.packing.padding.eq(~is_data),
            self.empty.eq((planes == 0) | (top | rows | bottom == 0) | (left | tiles | right == 0)),
            step.data.eq(is_data & ~self.empty),
            step.pad_value.eq(fields.pad_value), step.post.eq(fields.post),
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
