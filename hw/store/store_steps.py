"""The steps of a store: every read of the scratchpad and its position in a beat, in order."""

from ...isa.config import Config
from ...isa.instructions import Store
from ..transfer.tile_steps import TileSteps


class StoreSteps(TileSteps):
    """Iterates over the tiles of stores in DRAM order: one step is one read, or another part of the
    tile read before.

    For rate, latency and back-pressure see `TileSteps`. A step has one field of its own:

        read        read the tile; otherwise the step uses another part of the one read last

    Members
    -------
    instructions : In(stream of prepared_layout)
        The stores, in order. The one at the head stays until it is taken, together with its last
        step.
    steps : Out(stream of tile_steps.step_layout)
        The content of the beats of each store, in order.
    """

    def __init__(self, config: Config):
        super().__init__(config, Store, own={"read": 1},
                         carried=("part", "alone", "word_lane", "strobe", "bytes"))

    def _prepare(self, m, fields, prepared):
        planes, rows, tiles = fields.shape
        m.d.comb += prepared.empty.eq((planes == 0) | (rows == 0) | (tiles == 0))

    def _count_rows(self, m):
        _, rows, tiles = self.fields.shape
        m.d.comb += [
            self.row_ends.eq(self.run_ends),
            self.plane_ends.eq(self.run_ends & self.rows.is_last),
            self.in_last_run.eq(self.rows.is_last),
            self.new_plane.eq(self.rows.is_last), self.new_row.eq(1),
            self.first_data.eq(1), self.next_data.eq(1),
        ]
        with m.If(self.goes):
            m.d.sync += self.tiles_left.eq(self.tiles_left - self.packing.advance)
            with m.If(self.row_ends):
                m.d.sync += self.rows.step()
            with m.If(self.begins | self.row_ends):
                m.d.sync += self.tiles_left.eq(tiles)
            with m.If(self.begins | self.plane_ends):
                m.d.sync += self.rows.load(rows)

    def _describe_own(self, m):
        m.d.comb += self.steps.payload.read.eq((self.packing.part == 0) & ~self.prepared.empty)
