"""The accumulating adder, with forwarding of results that have not reached memory yet."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.instructions import Buffer
from ..accumulator import ACC_BITS, by_lane, group_bits, request, sum_port
from ..interfaces import bits_for, index
from .mac import sum_shape


def addition(config: Config) -> data.StructLayout:
    """An addition: `tile` is the index of the other addend, which is zero with `clear`; `dst` is
    the destination, of which only some `groups` of lanes may be written."""
    return data.StructLayout({"valid": 1, "clear": 1, "tile": index(), "dst": index(),
                              **({"groups": group_bits(config)} if group_bits(config) else {})})


class ForwardingAdder(wiring.Component):
    """Adds one tile of sums a cycle to accumulator tiles, correct for any order of tiles.

        cycle      t - 2       t - 1          t            t + 1              t + 2
        addition   `reading`   `following`    `next`       `current`          `written`
        data                   `earlier` ◄    `recalled` ◄ addend + sums ►    `result`, to memory

    A read in cycle t - 2 misses the results of the four additions before it. The last of these is
    in `result` at t + 1, the second to last is there at t, and the other two are available at t -
    1, in `result` and `previous`: `earlier` selects among those two, and `recalled` adds the third.
    The newest result for a tile wins. Values that are not selected are zero, the tile from memory
    because of `drop`, so that the addend is `result` or else `recalled | tile`. Hazards are
    detected at t - 2. Since a depthwise product may write a single group of lanes, all this is done
    per group.

    Rate: an addition a cycle; never stalls. Latency: four cycles from `reading` to `write`.

    Members
    -------
    reading : In(addition)
        The next addition, in the cycle in which its tile is read.
    drop : Out(acc_groups)
        Groups of lanes of the tile that was read two cycles ago whose data must be zero.
    tile : In(acc tile)
        The tile of the addition that was `reading` three cycles ago, or zero.
    sums : In(array of sum_shape)
        The sums to add to that tile, batch × block_out lanes.
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

        # Which of the additions in flight produces the tile that `reading` needs. The newest wins;
        # all of them advance every cycle, as `reading` does.
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
        """For each group of lanes, whether an earlier addition produces the tile that `reading`
        needs."""
        found = before.valid & (before.dst[:self.index_bits] == reading.tile[:self.index_bits])
        found = (found & ~reading.clear).replicate(self.config.acc_groups)
        return found & before.groups if group_bits(self.config) else found

    def _spread(self, groups):
        """Expand a mask of groups to all bits of their lanes."""
        return Cat(each.replicate(ACC_BITS) for each in by_lane(self.config, groups))

    def _after(self, m, name, value, cycles):
        """Delay a mask of groups by some cycles."""
        for cycle in range(cycles):
            later = Signal(self.config.acc_groups, name=f"{name}_{cycle}")
            m.d.sync += later.eq(value)
            value = later
        return value
