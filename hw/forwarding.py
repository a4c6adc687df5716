"""Adds sums to accumulator tiles that may still be on their way back to memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import Config
from ..isa.instructions import Buffer
from .accumulator import ACC_BITS
from .interfaces import index
from .logic import first
from .mac import sum_shape
from .scratchpad import write_port

# A sum to add: `tile` is where the other addend lies, unless `clear` says that it is zero, and
# `dst` is where the result goes.
ADDITION = data.StructLayout({"valid": 1, "clear": 1, "tile": index(), "dst": index()})


class ForwardingAdder(wiring.Component):
    """Adds one tile of sums a cycle to accumulator tiles, right in any order of tiles.

        cycle      t - 1          t             t + 1          t + 2
        addition   read enabled   `following`   `current`      `written`
        data                      `recalled` ◄  tile + sums ►  `result`, to memory

    A read in cycle t - 1 lacks the results of the three additions before. The last one's will be
    in `result` at t + 1. The other two are at hand already at t, in `result` and `previous`, and
    `recalled` keeps the one that is wanted. The newest result for a tile counts.

    Rate: an addition a cycle; never stalls. Latency: two cycles from `following` to `write`.

    Members
    -------
    following : In(ADDITION)
        The next addition, one cycle ahead of its tile and its sums.
    tile : In(acc tile)
        The tile of the addition that was `following` in the cycle before. It was read in the
        cycle before that one.
    sums : In(array of sum_shape)
        What is added to that tile, batch × block_out lanes.
    write : Out(write_port)
        The result, two cycles after its addition was `following`.
    """

    def __init__(self, config: Config):
        self.lanes = config.batch * config.block_out
        self.tile_bits = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "following": In(ADDITION),
            "tile": In(self.tile_bits),
            "sums": In(data.ArrayLayout(sum_shape(config), self.lanes)),
            "write": Out(write_port(self.tile_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        following = self.following
        current, written, past = (Signal(ADDITION, name=name)
                                  for name in ("current", "written", "past"))
        result, previous, recalled = (Signal(self.tile_bits, name=name, reset_less=True)
                                      for name in ("result", "previous", "recalled"))
        m.d.sync += [current.eq(following), written.eq(current), past.eq(written),
                     previous.eq(result)]

        # What `current` must add, decided a cycle ahead.
        of_current, of_written, of_past = (
            each.valid & (each.dst == following.tile) for each in (current, written, past))
        take_result, take_recalled = Signal(), Signal()
        m.d.sync += [
            take_result.eq(of_current & ~following.clear),
            take_recalled.eq(of_written | of_past | following.clear),
            recalled.eq(first([(following.clear, 0), (of_written, result), (1, previous)])),
        ]
        addend = Signal(self.tile_bits)
        m.d.comb += addend.eq(first([(take_result, result), (take_recalled, recalled),
                                     (1, self.tile)]))
        for lane in range(self.lanes):
            m.d.sync += result.word_select(lane, ACC_BITS).eq(
                addend.word_select(lane, ACC_BITS) + self.sums[lane])
        m.d.comb += [self.write.enable.eq(written.valid), self.write.index.eq(written.dst),
                     self.write.data.eq(result)]
        return m
