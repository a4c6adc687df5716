"""How tiles lie in beats: what one step moves between a beat of the bus and a scratchpad."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ..isa.config import INDEX_BITS, Config
from ..isa.instructions import Buffer
from .interfaces import bits_for
from .rows import COUNT_BITS

ACCUMULATOR = (Buffer.ACC, Buffer.ACC8)


def parts_of(config: Config, buffer: Buffer) -> int:
    """Beats that a tile takes; 1 where it takes one or less."""
    return max(1, config.tile_bytes(buffer) // config.bus_bytes)


class Packing(Component):
    """The next step along a row of tiles. Combinational.

    A tile of a beat or more moves beat by beat, each a `part` of it. Smaller tiles share a beat;
    their place in it, the lane, follows from the DRAM address:

        beat    [ lane 3 | lane 2 | lane 1 | lane 0 ]        ¼ beat a tile
        word    [ lane 3 | lane 2 | lane 1 | lane 0 ]        of the scratchpad: by tile index

    Where a tile's lane is the same in both, all tiles that the beat and the row have left move in
    one step. Otherwise, and in the accumulator, where a word is one tile, one moves at a time. A
    tile of padding moves without a beat, one at a time.

    Parameters
    ----------
    buffers : those that `buffer` may name

    Members
    -------
    buffer : In(Buffer)
        The scratchpad, and how its tiles lie in DRAM.
    padding : In(1)
        The step writes a tile of the border.
    index : In(INDEX_BITS + 1)
        The tile of the scratchpad, inside it or not.
    part : In(part of a tile)
        The part of this tile that moves next.
    place : In(byte of a beat)
        The byte of the beat at which this tile starts.
    left : In(COUNT_BITS)
        Tiles of the row that have not moved: at least one.
    outside : Out(1)
        The step reaches a tile that the scratchpad does not have.
    count : Out(range(bus_bytes + 1))
        Tiles whose move is complete with this step.
    alone : Out(1)
        One tile moves, between different lanes of beat and word.
    lane, word_lane : Out(byte of a beat)
        The lane of the tile in its beat and in its word.
    word_lanes : Out(bus_bytes)
        Lanes of the word that the step moves; 1 where a word is a tile.
    strobe : Out(bus_bytes)
        Bytes of the beat that the step moves.
    bytes : Out(range(bus_bytes + 1))
        The number of these bytes.
    ends_beat, ends_row : Out(1)
        Nothing of this beat, or of this row, is left after the step.
    next_part : Out(part of a tile)
        `part` of the step that follows in this row.
    next_place : Out(byte of a beat)
        `place` of the step that follows in this row.
    """

    def __init__(self, config: Config, buffers: tuple[Buffer, ...]):
        self.config = config
        self.buffers = buffers
        self.place_bits = exact_log2(config.bus_bytes)
        part_bits = bits_for(max(parts_of(config, buffer) for buffer in buffers))
        some = range(config.bus_bytes + 1)
        super().__init__({
            "buffer": In(Shape.cast(Buffer)), "padding": In(1), "index": In(INDEX_BITS + 1),
            "part": In(part_bits), "place": In(self.place_bits), "left": In(COUNT_BITS),
            "outside": Out(1), "count": Out(some), "alone": Out(1),
            "lane": Out(self.place_bits), "word_lane": Out(self.place_bits),
            "word_lanes": Out(config.bus_bytes), "strobe": Out(config.bus_bytes),
            "bytes": Out(some), "ends_beat": Out(1), "ends_row": Out(1),
            "next_part": Out(part_bits), "next_place": Out(self.place_bits),
        })

    def elaborate(self, platform):
        m = Module()
        with m.Switch(self.buffer):
            for buffer in self.buffers:
                with m.Case(buffer):
                    if self.config.tile_bytes(buffer) < self.config.bus_bytes:
                        self._several_in_a_beat(m, buffer)
                    else:
                        self._several_beats(m, buffer)
        with m.If(self.padding):
            m.d.comb += [self.count.eq(1), self.ends_row.eq(self.left == 1), self.alone.eq(0),
                         self.ends_beat.eq(0), self.bytes.eq(0), self.next_part.eq(0),
                         self.next_place.eq(self.place)]
        return m

    def _several_beats(self, m, buffer):
        last_part = self.part == parts_of(self.config, buffer) - 1
        m.d.comb += [
            self.count.eq(last_part),
            self.word_lanes.eq(1), self.strobe.eq(~0), self.bytes.eq(self.config.bus_bytes),
            self.ends_beat.eq(1), self.ends_row.eq(last_part & (self.left == 1)),
            self.next_part.eq(Mux(last_part, 0, self.part + 1)), self.next_place.eq(0),
            self.outside.eq(self._is_outside(buffer, self.index)),
        ]

    def _several_in_a_beat(self, m, buffer):
        tile = self.config.tile_bytes(buffer)
        lanes = self.config.bus_bytes // tile
        name = buffer.name.lower()
        room = Signal(range(lanes + 1), name=f"{name}_room")        # tiles to the end of the beat
        beat_lanes = Signal(lanes, name=f"{name}_lanes")
        together = (Const(0) if buffer in ACCUMULATOR else self.lane == self.word_lane)
        m.d.comb += [
            self.lane.eq(self.place >> exact_log2(tile)),
            self.word_lane.eq(self.index[:exact_log2(lanes)]),
            room.eq(lanes - self.lane),
            self.word_lanes.eq(_run(self.word_lane, self.count, lanes)),
            beat_lanes.eq(_run(self.lane, self.count, lanes)),
            self.strobe.eq(Cat(each.replicate(tile) for each in beat_lanes)),
            self.bytes.eq(self.count << exact_log2(tile)),
            self.outside.eq(self._is_outside(buffer, self.index + self.count - 1)),
        ]
        with m.If(together):
            m.d.comb += [
                self.count.eq(Mux(self.left <= room, self.left, room)),
                self.ends_beat.eq(1), self.ends_row.eq(self.left <= room), self.next_place.eq(0),
            ]
        with m.Else():
            m.d.comb += [
                self.count.eq(1), self.alone.eq(1),
                self.ends_beat.eq((room == 1) | (self.left == 1)), self.ends_row.eq(self.left == 1),
                self.next_place.eq(self.place + tile),
            ]

    def _is_outside(self, buffer, index):
        return index[exact_log2(self.config.tiles(buffer)):] != 0


def _run(first, count, lanes):
    """A mask of `count` lanes from the first one on."""
    return Cat((first <= lane) & (lane < first + count) for lane in range(lanes))
