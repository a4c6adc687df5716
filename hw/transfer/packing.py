"""The layout of tiles in beats: what one step moves between a beat and a scratchpad."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ...isa.config import INDEX_BITS, Config
from ...isa.instructions import Buffer
from ..interfaces import bits_for
from ..logic import reach_bits
from .burst_walker import COUNT_BITS

ACCUMULATOR = (Buffer.ACC, Buffer.ACC8)     # a word is one tile, whatever the bus width


def parts_of(config: Config, buffer: Buffer) -> int:
    """Beats of a tile, at least 1."""
    return max(1, config.tile_bytes(buffer) // config.bus_bytes)


def lanes_of(config: Config, buffer: Buffer) -> int:
    """Tiles in a beat, at least 1."""
    return max(1, config.bus_bytes // config.tile_bytes(buffer))


class Packing(Component):
    """The current step along a run of tiles. Combinational.

    A tile of a beat or more moves beat by beat, each a `part` of it. Smaller tiles share a beat;
    their position in it, the lane, follows from the DRAM address:

        beat    [ lane 3 | lane 2 | lane 1 | lane 0 ]        ¼ beat a tile
        word    [ lane 3 | lane 2 | lane 1 | lane 0 ]        of the scratchpad: by tile index

    If a tile's lane is the same in both, all tiles left in the beat and the row move in one step,
    `together`. Otherwise, and in the accumulator, where a word is one tile, one moves at a time.
    Tiles of padding move one at a time, without a beat.

    Whether tiles move together is the same for a whole run, and whether a step `fits` the rest of
    it is known one step ahead. The caller holds these, `last_part` and `within` in registers:
    `begin` gives their values for the first step of a run, outputs those for the next step.

    Parameters
    ----------
    buffers : those that `buffer` may name

    Members
    -------
    buffer : In(Buffer)
        The scratchpad, and the layout of its tiles in DRAM.
    lanes, parts : In(lane, or part)
        Tiles in a beat, or beats of a tile, less one, as `prepare` gives them.
    padding : In(1)
        The step writes a tile of the border.
    together : In(1)
        Tiles that share a beat move in one step.
    fits : In(1)
        The step can move all tiles that are left.
    within : In(range(2 * bus_bytes + 1))
        Tiles that this step and the next can move, if they move together.
    index : In(index_bits)
        The tile of the scratchpad, in range or not.
    part : In(part of a tile)
        The part of this tile that moves next.
    last_part : In(1)
        It is the last one, or the whole tile moves.
    lane : In(lane of a beat)
        The lane of this tile in its beat.
    left : In(COUNT_BITS)
        Tiles left in the run, at least one.
    outside : Out(1)
        The step includes a tile out of range.
    advance : Out(range(bus_bytes + 1))
        Tiles that this step completes, if it does not end the run.
    alone : Out(1)
        A single tile moves, between different lanes of beat and word.
    word_lane : Out(lane of a beat)
        The lane of the tile in its word.
    word_lanes : Out(bus_bytes)
        Lanes of the word that the step moves; 1 where a word is a tile.
    strobe : Out(bus_bytes)
        Bytes of the beat that the step moves.
    bytes : Out(range(bus_bytes + 1))
        The number of these bytes.
    ends_beat : Out(1)
        The step is the last one of this beat.
    next_part : Out(part of a tile)
        `part` of the next step in this run.
    next_lane : Out(lane of a beat)
        `lane` of the next step in this run.
    next_last_part, next_fits : Out(1)
        `last_part` and `fits` of the next step in this run.
    next_ends_row : Out(1)
        The next step is the last one of this run.
    next_within : Out(range(2 * bus_bytes + 1))
        `within` of the next step in this run.
    """

    def __init__(self, config: Config, buffers: tuple[Buffer, ...]):
        self.config = config
        self.buffers = buffers
        self.lane_bits = bits_for(max(lanes_of(config, buffer) for buffer in buffers))
        self.part_bits = bits_for(max(parts_of(config, buffer) for buffer in buffers))
        # From an index in range, `narrow` pitches and the tiles of a step lead to no other one.
        reached = max(2 * config.bus_bytes, *(config.tiles(buffer) for buffer in buffers))
        self.index_bits = min(reach_bits(reached), INDEX_BITS + 1)
        some = range(config.bus_bytes + 1)
        super().__init__({
            "buffer": In(Shape.cast(Buffer)), "lanes": In(self.lane_bits),
            "parts": In(self.part_bits), "padding": In(1), "together": In(1), "fits": In(1),
            "within": In(range(2 * config.bus_bytes + 1)), "index": In(self.index_bits),
            "part": In(self.part_bits), "last_part": In(1), "lane": In(self.lane_bits),
            "left": In(COUNT_BITS),
            "outside": Out(1), "advance": Out(some), "alone": Out(1),
            "word_lane": Out(self.lane_bits),
            "word_lanes": Out(config.bus_bytes), "strobe": Out(config.bus_bytes),
            "bytes": Out(some), "ends_beat": Out(1),
            "next_part": Out(self.part_bits), "next_lane": Out(self.lane_bits),
            "next_last_part": Out(1), "next_fits": Out(1), "next_ends_row": Out(1),
            "next_within": Out(range(2 * config.bus_bytes + 1)),
        })

    # Computed from an instruction before its first step.

    def prepared_layout(self) -> dict[str, ShapeLike]:
        """What `prepare` computes about rows of tiles.

        lanes, parts    tiles in a beat and beats of a tile, less one: masks
        shared          tiles of a beat may move together
        single, short   a row has one tile, or no more than a beat can hold
        last_lane       in which a short row may start and end in the same beat
        together        tiles of the first beat do move together
        """
        return {"together": 1, "lanes": self.lane_bits, "parts": self.part_bits, "shared": 1,
                "single": 1, "short": 1, "last_lane": self.lane_bits}

    def prepare(self, prepared, buffer: Value, tiles: Value, index: Value, lane: Value) -> list:
        lanes = self._by_buffer(buffer, lambda each: lanes_of(self.config, each) - 1)
        return [
            prepared.lanes.eq(lanes),
            prepared.parts.eq(self._by_buffer(buffer,
                                              lambda each: parts_of(self.config, each) - 1)),
            prepared.shared.eq(self._by_buffer(buffer, lambda each: each not in ACCUMULATOR
                                               and lanes_of(self.config, each) > 1)),
            prepared.together.eq(self._together(prepared, index, lane)),
            prepared.single.eq(tiles == 1),
            prepared.short.eq(tiles <= lanes + 1),
            prepared.last_lane.eq(lanes + 1 - tiles[:self.lane_bits]),
        ]

    def lane_of(self, buffer: Value, place: Value) -> Value:
        """The lane of a tile that starts at a byte of DRAM; of a stride, the difference of
        lanes."""
        lane = Const(0, self.lane_bits)
        for each in self.buffers:
            lanes = lanes_of(self.config, each)
            if lanes > 1:
                start = exact_log2(self.config.tile_bytes(each))
                lane = Mux(buffer == each, place[start:start + exact_log2(lanes)], lane)
        return lane

    def _together(self, prepared, index, lane):
        return prepared.shared & ((lane ^ index[:self.lane_bits]) & prepared.lanes == 0)

    def begin(self, prepared, index: Value, lane: Value) -> dict[str, Value]:
        """`together`, `fits` and `within` of the first step of a run of data."""
        return self._begin(prepared, self._together(prepared, index, lane), lane)

    def start(self, prepared, lane: Value) -> dict[str, Value]:
        """The same for the first run of an instruction."""
        return self._begin(prepared, prepared.together, lane)

    def _begin(self, prepared, together, lane):
        lane = lane & prepared.lanes
        fits = Mux(together, prepared.short & (lane <= prepared.last_lane), prepared.single)
        return {"together": together, "fits": fits, "within": 2 * prepared.lanes - lane + 2}

    def _by_buffer(self, buffer, function):
        """Select a number by buffer."""
        result = Const(0)
        for each in self.buffers:
            result = Mux(buffer == each, Const(int(function(each))), result)
        return result

    def elaborate(self, platform):
        m = Module()
        room = Signal(self.lane_bits)               # lanes after this one in the beat
        more = Signal(self.lane_bits)               # those of them that the step moves
        m.d.comb += [
            room.eq(~self.lane & self.lanes),
            more.eq(Mux(self.together, Mux(self.fits, self.left - 1, room), 0)),
            self.advance.eq(Mux(self.together, room + 1, self.last_part)),
            self.alone.eq(~self.padding & ~self.together & (self.lanes != 0)),
            self.word_lane.eq(self.index[:self.lane_bits] & self.lanes),
            self.word_lanes.eq(_run(self.word_lane, more, 1 << self.lane_bits)),
            self.ends_beat.eq(~self.padding & (self.together | self.fits | (room == 0))),
            self.next_part.eq(Mux(self.padding, 0, (self.part + 1) & self.parts)),
            self.next_last_part.eq(self.padding | (self.next_part == self.parts)),
            # Written so that synthesis infers no enable, which would arrive late.
            self.next_lane.eq(Mux(self.together, 0, (self.lane + ~self.padding) & self.lanes)),
            self.next_fits.eq(Mux(self.together, self.left <= self.within,
                                  Mux(self.last_part, self.left == 2, self.fits))),
            self.next_ends_row.eq(self.next_fits & self.next_last_part),
        ]
        m.d.comb += self.next_within.eq(2 * self.lanes + 2)         # whole beats, from now on
        with m.Switch(self.buffer):
            for buffer in self.buffers:
                with m.Case(buffer):
                    self._measure(m, buffer, more)
        return m

    def _measure(self, m, buffer, more):
        """Drive what depends on the size of a tile and of the scratchpad."""
        tile, lanes = self.config.tile_bytes(buffer), lanes_of(self.config, buffer)
        tiles = self.config.tiles(buffer)
        reached = self.index
        if tiles < lanes:               # otherwise a word is in range or not as a whole
            reached = self.index + more
        moved = _run(self.lane[:bits_for(lanes)], more, lanes) if lanes > 1 else Const(1)
        size = min(tile, self.config.bus_bytes)
        m.d.comb += [
            self.outside.eq(reached[exact_log2(tiles):] != 0),
            self.strobe.eq(Cat(each.replicate(size) for each in moved)),
            self.bytes.eq(Mux(self.padding, 0, (more + 1) << exact_log2(size))),
        ]


def _run(first, more, lanes):
    """A mask of lanes: `first` and `more` lanes after it."""
    return Cat((first <= lane) & (lane <= first + more) for lane in range(lanes))
