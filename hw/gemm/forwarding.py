"""Adds sums to accumulator tiles that may still be on their way back to memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.instructions import Buffer
from ..accumulator import ACC_BITS, by_lane, group_bits, request, sum_port
from ..interfaces import bits_for, index
from .mac import sum_shape


def addition(config: Config) -> data.StructLayout:
    """A sum to add: `tile` is where the other addend lies, unless `clear` says that it is zero, and
    `dst` is where the result goes, or some groups of its lanes."""
    return data.StructLayout({"valid": 1, "clear": 1, "tile": index(), "dst": index(),
                              **({"groups": group_bits(config)} if group_bits(config) else {})})


class ForwardingAdder(wiring.Component):
    """Adds one tile of sums a cycle to accumulator tiles, right in any order of tiles.

        cycle      t - 2       t - 1          t            t + 1              t + 2
        addition   `reading`   `following`    `next`       `current`          `written`
        data                   `earlier` ◄    `recalled` ◄ addend + sums ►    `result`, to memory

    A read in cycle t - 2 lacks the results of the four additions before. The last one's will be
    in `result` at t + 1, that of the one before it is there at t, and the other two are at hand
    already at t - 1, in `result` and `previous`: `earlier` keeps the one of these that is wanted,
    and `recalled` that or the third. The newest result for a tile counts. Whatever is not wanted
    is zero, the tile that was read because of `drop`, so that the addend is `result` or else
    `recalled | tile`. Who depends on whom is found out at t - 2. Where a depthwise product writes
    one group of lanes alone, all this goes for each group.

    Rate: an addition a cycle; never stalls. Latency: four cycles from `reading` to `write`.

    Members
    -------
    reading : In(addition)
        The next addition, in the cycle in which its tile is read.
    drop : Out(acc_groups)
        Groups of lanes of the tile that was read two cycles ago that are not wanted: their data
        must be zero.
    tile : In(acc tile)
        The tile of the addition that was `reading` three cycles ago, or zero.
    sums : In(array of sum_shape)
        What is added to that tile, batch × block_out lanes.
    write : Out(sum_port)
        The result, four cycles after its addition was `reading`.
    """

    def __init__(self, config: Config):
        self.config = config
        self.index_bits = bits_for(config.tiles(Buffer.ACC))
        self.lanes = config.batch * config.block_out
        self.tile_bits = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "reading": In(addition(config)),
            "drop": Out(config.acc_groups),
            "tile": In(self.tile_bits),
            "sums": In(data.ArrayLayout(sum_shape(config), self.lanes)),
            "write": Out(sum_port(config)),
        })

    def elaborate(self, platform):
        m = Module()
        reading = self.reading
        following, at_next, current, written = (
            Signal(addition(self.config), name=name)
            for name in ("following", "next", "current", "written"))
        m.d.sync += [following.eq(reading), at_next.eq(following), current.eq(at_next),
                     written.eq(current)]

        # Which of the additions before makes what `reading` will need. The newest counts; all of
        # them move on cycle by cycle, as `reading` does.
        of_last, of_second, of_third, of_fourth = (
            self._makes(each, reading) for each in (following, at_next, current, written))
        groups = self.config.acc_groups
        recall_result, recall_previous = (
            Signal(groups, name=name) for name in ("recall_result", "recall_previous"))
        m.d.sync += [recall_result.eq(of_third & ~of_second),
                     recall_previous.eq(of_fourth & ~of_third & ~of_second)]
        recall_second = self._after(m, "recall_second", of_second, 2)
        take_result = self._after(m, "take_result", of_last, 3)
        m.d.comb += self.drop.eq(self._after(
            m, "drop", reading.clear.replicate(groups) | of_last | of_second | of_third | of_fourth,
            2))

        result, previous, earlier, recalled = (
            Signal(self.tile_bits, name=name, reset_less=True)
            for name in ("result", "previous", "earlier", "recalled"))
        m.d.sync += [
            previous.eq(result),
            earlier.eq((result & self._spread(recall_result))
                       | (previous & self._spread(recall_previous))),
            recalled.eq((result & self._spread(recall_second)) | earlier),
        ]
        addend = Signal(self.tile_bits)
        for lane, takes in enumerate(by_lane(self.config, take_result)):
            of_lane = addend.word_select(lane, ACC_BITS)
            m.d.comb += of_lane.eq(Mux(takes, result.word_select(lane, ACC_BITS),
                                       (recalled | self.tile).word_select(lane, ACC_BITS)))
            m.d.sync += result.word_select(lane, ACC_BITS).eq(of_lane + self.sums[lane])
        writes = Signal.like(self.write.enable)
        spares = Signal.like(writes, init=2**self.config.acc_banks - 1)
        will_write = request(self.config, current.valid, current.dst)
        m.d.sync += [writes.eq(will_write), spares.eq(~will_write)]
        m.d.comb += [self.write.enable.eq(writes), self.write.spares.eq(spares),
                     self.write.next_enable.eq(current.valid),
                     self.write.next_index.eq(current.dst),
                     self.write.index.eq(written.dst), self.write.data.eq(result)]
        if group_bits(self.config):
            m.d.comb += self.write.groups.eq(written.groups)
        return m

    def _makes(self, before, reading):
        """For each group of lanes, whether an addition before makes what `reading` will need."""
        found = before.valid & (before.dst[:self.index_bits] == reading.tile[:self.index_bits])
        found = (found & ~reading.clear).replicate(self.config.acc_groups)
        return found & before.groups if group_bits(self.config) else found

    def _spread(self, groups):
        """A bit of each group for all bits of its lanes."""
        return Cat(each.replicate(ACC_BITS) for each in by_lane(self.config, groups))

    def _after(self, m, name, value, cycles):
        """A condition, some cycles later."""
        for cycle in range(cycles):
            later = Signal(self.config.acc_groups, name=f"{name}_{cycle}")
            m.d.sync += later.eq(value)
            value = later
        return value
