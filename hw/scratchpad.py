"""A scratchpad in block RAM: LOAD or the ALU writes tiles, an engine reads them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature

from ..isa.config import Config
from ..isa.instructions import Buffer
from .interfaces import fill_port, index, read_port
from .logic import exponent, register

# Tells synthesis that no word is read in the cycle in which it is written. Without this, some FPGAs
# need a register and a multiplexer per bit to return the old word in that case.
UNRELATED = {"no_rw_check": 1}


def write_port(tile_bits: int) -> Signature:
    """Writes a tile. It is visible to reads enabled in the next cycle."""
    return Signature({"enable": Out(1), "index": Out(index()), "data": Out(tile_bits)})


class Scratchpad(wiring.Component):
    """Holds the tiles of one buffer: uop, inp, wgt or out.

    A word of the memory is as wide as a tile, a beat of the bus, or a tile that GEMM reads from
    out, whichever is widest:

        tile = 4 beats      word = [ part 3 | part 2 | part 1 | part 0 ] = one tile
        tile = ¼ beat       word = [ lane 3 | lane 2 | lane 1 | lane 0 ] = four tiles

    A tile of several parts is filled part by part, or all parts alike with `whole`. If tiles share
    a word, tile `index` is lane `index % lanes` of word `index // lanes`; a fill writes the `lanes`
    it names, each from the same lane of its data. A micro-op's lane is selected ahead of the data
    register. Other lanes are selected behind it, since a block RAM takes most of a cycle, and GEMM
    has operand registers for activations and weights.

    Rate: one write and one read a cycle, always accepted. Latency: the data of a read enabled in
    cycle t are valid from t + 2 until the next read replaces them, or in t + 2 only. Tokens ensure
    that no tile is read in the cycle in which it is written; other lanes of its word may be.

    Parameters
    ----------
    buffer : which scratchpad this is
    words : read whole words: STORE wants every tile that shares a beat
    brief : data of `read` are zero but in the second cycle after `enable`, as those of `tiles`
        always are: then GEMM can combine what it reads from either scratchpad without a choice
    shared : GEMM reads tiles too, by a port of its own

    Members
    -------
    fill : In(fill_port)
        From LOAD; uop, inp and wgt have it.
    write : In(write_port)
        From the ALU; out has it.
    read : In(read_port)
        To an engine. With `words`, the data are the whole word that holds the tile.
    tiles : In(read_port)
        To GEMM, if it is `shared`: tiles as inp has them. Its data are brief.
    """

    def __init__(self, config: Config, buffer: Buffer, *, words: bool = False,
                 brief: bool = False, shared: bool = False):
        self.buffer = buffer
        self.tile_bits = 8 * config.tile_bytes(buffer)
        self.store_bits = max(self.tile_bits, config.bus_bits)
        self.gemm_bits = 8 * config.tile_bytes(Buffer.INP) if shared else 0
        self.word_bits = max(self.store_bits, self.gemm_bits)
        self.parts = self.word_bits // config.bus_bits      # beats in a word
        self.lanes = self.word_bits // self.tile_bits       # tiles in a word
        self.words, self.shared, self.brief = words, shared, brief
        self.memory = Memory(shape=self.word_bits, depth=max(2, config.tiles(buffer) // self.lanes),
                             init=[], attrs=UNRELATED if self.lanes == 1 else {})
        source = {"write": In(write_port(self.tile_bits))} if buffer == Buffer.OUT else {
            "fill": In(fill_port(config, self.parts))}
        super().__init__({
            **source, "read": In(read_port(self.store_bits if words else self.tile_bits)),
            **({"tiles": In(read_port(self.gemm_bits))} if shared else {})})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        if self.buffer == Buffer.OUT:
            self._write(m)
        else:
            self._fill(m)
        self._read(m, self.read, self.tile_bits, brief=self.brief)
        if self.shared:
            self._read(m, self.tiles, self.gemm_bits, brief=True)
        return m

    def _place(self, tile, tile_bits):
        """Word and lane of a tile of `tile_bits`."""
        lane_bits = exponent(self.word_bits // tile_bits)
        return tile[lane_bits:], tile[:lane_bits]

    def _fill(self, m):
        fill = self.fill
        word, _ = self._place(fill.index, self.tile_bits)
        if self.lanes > 1:
            written = fill.lanes[:self.lanes]
        else:
            written = Cat(fill.whole | (fill.part == part) for part in range(self.parts))
        port = self.memory.write_port(granularity=self.word_bits // len(written))
        m.d.comb += [
            port.addr.eq(word),
            port.data.eq(fill.data.replicate(self.parts)),
            port.en.eq(Mux(fill.enable, written, 0)),
            fill.ready.eq(1),
        ]

    def _write(self, m):
        word, lane = self._place(self.write.index, self.tile_bits)
        port = self.memory.write_port(granularity=self.tile_bits)
        m.d.comb += [
            port.addr.eq(word),
            port.data.eq(self.write.data.replicate(self.lanes)),
            port.en.eq(Mux(self.write.enable, Const(1, self.lanes) << lane, 0)),
        ]

    def _read(self, m, read, tile_bits, *, brief):
        """Read tiles of `tile_bits`, or as much as the port's data are wide."""
        word, lane = self._place(read.index, tile_bits)
        lane = lane[exponent(len(read.data) // tile_bits):]
        port = self.memory.read_port()
        m.d.comb += [port.addr.eq(word), port.en.eq(read.enable)]

        # The memory's own output register holds the word in the cycle in which `fetched` is set.
        fetched = Signal()
        m.d.sync += fetched.eq(read.enable)
        fetched_data = port.data
        chooses = len(lane) > 0
        if chooses:
            fetched_lane = register(m, lane, "fetched_lane")
            if self.buffer == Buffer.UOP:
                fetched_data = port.data.word_select(fetched_lane, len(read.data))
        tile_data = Signal.like(fetched_data, name="tile_data", reset_less=True)
        # On some FPGAs block RAMs include that register, but without a reset.
        shown = Mux(register(m, fetched, "shown"), tile_data, 0) if brief else tile_data
        with m.If(fetched | brief):
            m.d.sync += tile_data.eq(fetched_data)
        m.d.comb += read.data.eq(shown)
        if chooses and self.buffer != Buffer.UOP:
            data_lane = Signal.like(lane, name="data_lane", reset_less=True)
            with m.If(fetched):
                m.d.sync += data_lane.eq(fetched_lane)
            m.d.comb += read.data.eq(shown.word_select(data_lane, len(read.data)))
