"""The steps of a load: every write to the scratchpad, border and data, in order."""

from enum import IntEnum

from amaranth.hdl import Cat, Mux, Signal

from ...isa.config import Config
from ...isa.instructions import Engine, Load
from ..layouts import widths_of
from ..transfer.tile_steps import TileSteps


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
    """Iterates over the tiles of loads in scratchpad order: one step is one write.

            left       x       right
          ┌──────┬───────────┬───────┐
          │         top              │      a plane: rows of left + x + right tiles,
          ├──────┬───────────┬───────┤      one after the other in the scratchpad
          │ pad  │   data    │  pad  │ y
          ├──────┴───────────┴───────┤
          │        bottom            │
          └──────────────────────────┘

    For rate, latency and back-pressure see `TileSteps`. A step has these fields of its own:

        data        the tile comes from a beat; otherwise it is padding
        pad_value   the padding
        post        engines that get a token when the load is complete

    Members
    -------
    instructions : In(stream of prepared_layout)
        The loads, in order. The one at the head stays until it is taken, together with its last
        step.
    steps : Out(stream of tile_steps.step_layout)
        Every write of each load, border and data, in the order of its tiles.
    """

    def __init__(self, config: Config):
        super().__init__(config, Load, carried=("part", "alone", "lane", "word_lanes", "bytes"),
                         own={"data": 1, "pad_value": widths_of(Load)["pad_value"],
                              "post": len(Engine)})

    def _prepared_layout(self):
        return {"first_run": Run, "last_run": Run, "first_section": Section,
                "last_section": Section}

    def _prepare(self, m, fields, prepared):
        planes, _, _ = fields.shape
        heights, widths = _sizes(fields)
        no_height, no_width = (Cat(*sizes.values()) == 0 for sizes in (heights, widths))
        m.d.comb += [
            prepared.first_run.eq(_first(widths)), prepared.last_run.eq(_last(widths)),
            prepared.first_section.eq(_first(heights)), prepared.last_section.eq(_last(heights)),
            prepared.empty.eq((planes == 0) | no_height | no_width),
        ]

    def _count_rows(self, m):
        heights, widths = _sizes(self.fields)
        prepared = self.prepared
        section, run = Signal(Section, reset_less=True), Signal(Run, reset_less=True)
        in_last_section, in_last_run = (Signal(name=name, reset_less=True)
                                        for name in ("in_last_section", "in_last_run"))

        # What the current step ends when it is taken. In DRAM there are only the rows with data.
        line_ends, section_ends = (Signal(name=name) for name in ("line_ends", "section_ends"))
        m.d.comb += [
            line_ends.eq(self.run_ends & in_last_run),
            section_ends.eq(line_ends & self.rows.is_last),
            self.row_ends.eq(line_ends & (section == Section.MIDDLE)),
            self.plane_ends.eq(self.run_ends & self.in_last_run),
            self.in_last_run.eq(in_last_run & self.rows.is_last & in_last_section),
        ]
        # The next run: in this row, or the first of the next row, which is in this section, in the
        # next one, or in the first one of a plane. All candidates are computed first, then
        # selected, before it is known whether the current run ends.
        run_after, section_after = _after(run, widths), _after(section, heights)
        new_section = in_last_run & self.rows.is_last
        new_line, new_plane = self.begins | in_last_run, self.begins | self.new_plane
        first_in_middle = prepared.first_section == Section.MIDDLE
        in_middle = Mux(self.new_plane, first_in_middle, Mux(
            new_section, section_after == Section.MIDDLE, section == Section.MIDDLE))
        starts_with_body = prepared.first_run == Run.BODY
        m.d.comb += [
            self.new_plane.eq(new_section & in_last_section),
            self.new_row.eq(in_last_run & (section == Section.MIDDLE)),
            self.first_data.eq(first_in_middle & starts_with_body),
            self.first_single.eq(_of(widths, prepared.first_run) == 1),
            self.next_data.eq(Mux(in_last_run, in_middle & starts_with_body,
                                  (section == Section.MIDDLE) & (run_after == Run.BODY))),
            self.next_single.eq(Mux(in_last_run, self.first_single,
                                    _of(widths, run_after) == 1)),
        ]
        with m.If(self.goes):
            m.d.sync += self.tiles_left.eq(self.tiles_left - self.packing.advance)
            with m.If(line_ends):
                m.d.sync += self.rows.step()
            with m.If(self.begins | self.run_ends):
                m.d.sync += [
                    run.eq(Mux(new_line, prepared.first_run, run_after)),
                    in_last_run.eq(Mux(new_line, prepared.first_run == prepared.last_run,
                                       run_after == prepared.last_run)),
                    self.tiles_left.eq(Mux(new_line, _of(widths, prepared.first_run),
                                           _of(widths, run_after))),
                ]
            with m.If(self.begins | section_ends):
                m.d.sync += [
                    section.eq(Mux(new_plane, prepared.first_section, section_after)),
                    in_last_section.eq(Mux(
                        new_plane, prepared.first_section == prepared.last_section,
                        section_after == prepared.last_section)),
                    *self.rows.load(_of(heights, section_after), unless=new_plane,
                                    other=_of(heights, prepared.first_section)),
                ]

    def _describe_own(self, m):
        fields, step = self.fields, self.steps.payload
        m.d.comb += [
            step.data.eq(self.data & ~self.prepared.empty),
            step.pad_value.eq(fields.pad_value), step.post.eq(fields.post),
        ]


def _sizes(fields):
    """The heights of the sections of a plane, and the widths of the runs of a row."""
    _, rows, tiles = fields.shape
    top, bottom, left, right = fields.pad
    return ({Section.TOP: top, Section.MIDDLE: rows, Section.BOTTOM: bottom},
            {Run.LEFT: left, Run.BODY: tiles, Run.RIGHT: right})


def _first(sizes):
    """The first of three parts that is not empty; the last one if all are."""
    (first, size), (middle, middle_size), (last, _) = sizes.items()
    return Mux(size != 0, first, Mux(middle_size != 0, middle, last))


def _last(sizes):
    (first, _), (middle, middle_size), (last, size) = sizes.items()
    return Mux(size != 0, last, Mux(middle_size != 0, middle, first))


def _after(part, sizes):
    """The next part that is not empty, given that there is one."""
    (first, _), (middle, middle_size), (last, _) = sizes.items()
    return Mux((part == first) & (middle_size != 0), middle, last)


def _of(sizes, part):
    """The size of a part."""
    (first, size), (middle, middle_size), (_, last_size) = sizes.items()
    return Mux(part == first, size, Mux(part == middle, middle_size, last_size))
