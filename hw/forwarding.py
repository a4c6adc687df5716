"""Adds sums to accumulator tiles that may still be on their way back to memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import Config
from ..isa.instructions import Buffer
from .accumulator import ACC_BITS
from .interfaces import bits_for, index
from .mac import sum_shape
from .scratchpad import write_port

# A sum to add: `tile` is where the other addend lies, unless `clear` says that it is zero, and
# `dst` is where the result goes.
ADDITION = data.StructLayout({"valid": 1, "clear": 1, "tile": index(), "dst": index()})


class ForwardingAdder(wiring.Component):
    """Adds one tile of sums a cycle to accumulator tiles, right in any order of tiles.

        cycle      t - 1       t             t + 1              t + 2
        addition   `reading`   `following`   `current`          `written`
        data                   `recalled` ◄  addend + sums ►    `result`, to memory

    A read in cycle t - 1 lacks the results of the three additions before. The last one's will be
    in `result` at t + 1. The other two are at hand already at t, in `result` and `previous`, and
    `recalled` keeps the one that is wanted. The newest result for a tile counts. Whatever is not
    wanted is zero, the tile that was read because of `drop`, so that the addend is `result` or
    else `recalled | tile`. Who depends on whom is found out at t - 1.

    Rate: an addition a cycle; never stalls. Latency: three cycles from `reading` to `write`.

    Members
    -------
    reading : In(ADDITION)
        The next addition, in the cycle in which its tile is read.
    drop : Out(1)
        The tile that was read in the cycle before is not wanted: its data must be zero.
    tile : In(acc tile)
        The tile of the addition that was `reading` two cycles ago, or zero.
    sums : In(array of sum_shape)
        What is added to that tile, batch × block_out lanes.
    write : Out(write_port)
        The result, three cycles after its addition was `reading`.
    """

    def __init__(self, config: Config):
        self.index_bits = bits_for(config.tiles(Buffer.ACC))
        self.lanes = config.batch * config.block_out
        self.tile_bits = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "reading": In(ADDITION),
            "drop": Out(1),
            "tile": In(self.tile_bits),
            "sums": In(data.ArrayLayout(sum_shape(config), self.lanes)),
            "write": Out(write_port(self.tile_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        reading = self.reading
        following, current, written = (Signal(ADDITION, name=name)
                                       for name in ("following", "current", "written"))
        m.d.sync += [following.eq(reading), current.eq(following), written.eq(current)]

        # What `following` will need, by the stage of the addition that makes it a cycle later.
        # `reading` waits a cycle for nobody, so each of them moves on as well.
        of_current, of_written, of_past = (
            each.valid & (each.dst[:self.index_bits] == reading.tile[:self.index_bits])
            & ~reading.clear for each in (following, current, written))
        take_result, recall_result, recall_previous, drop = (
            Signal(name=name) for name in ("take_result", "recall_result", "recall_previous",
                                           "drop_tile"))
        will_take_result = Signal()
        m.d.sync += [
            will_take_result.eq(of_current), take_result.eq(will_take_result),
            recall_result.eq(of_written), recall_previous.eq(of_past & ~of_written),
            drop.eq(reading.clear | of_current | of_written | of_past),
        ]
        m.d.comb += self.drop.eq(drop)

        result, previous, recalled = (Signal(self.tile_bits, name=name, reset_less=True)
                                      for name in ("result", "previous", "recalled"))
        m.d.sync += [
            previous.eq(result),
            recalled.eq((result & recall_result.replicate(self.tile_bits))
                        | (previous & recall_previous.replicate(self.tile_bits))),
        ]
        addend = Signal(self.tile_bits)
        m.d.comb += addend.eq(Mux(take_result, result, recalled | self.tile))
        for lane in range(self.lanes):
            m.d.sync += result.word_select(lane, ACC_BITS).eq(
                addend.word_select(lane, ACC_BITS) + self.sums[lane])
        m.d.comb += [self.write.enable.eq(written.valid), self.write.index.eq(written.dst),
                     self.write.data.eq(result)]
        return m
