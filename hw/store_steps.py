"""The steps of a store: every read of the scratchpad and where it goes in a beat, in order."""

from amaranth.hdl import Mux

from ..isa.config import Config
from ..isa.instructions import Store
from .tile_steps import TileSteps


class StoreSteps(TileSteps):
    """Walks the tiles of stores in the order in which DRAM gets them: one step is one read, or
    one more part of a tile that was read before.

    For rate, latency and back-pressure see `TileSteps`. A step has one field of its own:

        read        read the tile; otherwise the step takes another part of the one read last

    Members
    -------
    commands : In(stream of COMMAND)
        The stores, in order. The one at the head must stay until it is taken, with its last step.
    steps : Out(stream of tile_steps.step_layout)
        What goes into the beats of each store, in order.
    """

    def __init__(self, config: Config):
        super().__init__(config, Store, own={"read": 1},
                         carried=("part", "alone", "word_lane", "strobe", "bytes"))

    def _count_rows(self, m):
        _, rows, tiles = self.fields.shape
        m.d.comb += [
            self.row_ends.eq(self.packing.ends_row),
            self.plane_ends.eq(self.row_ends & (self.rows_left == 1)),
        ]
        with m.If(self.moved):
            m.d.sync += [
                self.tiles_left.eq(Mux(self.row_ends, tiles,
                                       self.tiles_left - self.packing.count)),
                self.rows_left.eq(Mux(self.plane_ends, rows, self.rows_left - self.row_ends)),
            ]
        with m.If(self.begins):
            m.d.sync += [self.tiles_left.eq(tiles), self.rows_left.eq(rows)]

    def _pitches(self):
        return self.fields.sram_pitch

    def _describe_own(self, m):
        step = self.steps.payload
        planes, rows, tiles = self.fields.shape
        m.d.comb += [
            self.empty.eq((planes == 0) | (rows == 0) | (tiles == 0)),
            step.read.eq((self.packing.part == 0) & ~self.empty),
        ]
