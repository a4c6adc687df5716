"""The ALU's tables: results on their way to `out`, replaced by what a table has for them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.instructions import TABLE_WORDS, TABLES, WORD_ENTRIES, Buffer
from ..logic import exponent, register
from ..scratchpad import UNRELATED, write_port
from .requantizer import LANE_BITS

LATENCY = 2                 # cycles that a result takes through the tables
ENTRY_BITS = LANE_BITS // WORD_ENTRIES
CHOICE_BITS = exponent(WORD_ENTRIES)


class AluTables(Component):
    """Holds `TABLES` tables of 256 entries, the same for every lane, and looks results up in them.

    Each lane has a copy of all tables in a memory of its own, so that all lanes are looked up at
    once. A word of it has four entries: at that width one block RAM holds eight tables, and a table
    is filled in 64 cycles instead of 256.

    Rate: a result, or a word for the tables, a cycle. Latency: a write leaves `LATENCY` cycles
    after it came, whether it was looked up or not. There is no back-pressure. A word that is filled
    in one cycle is found by a lookup in the next.

    Nobody notices the latency. An engine that reads `out` starts in the cycle after the ALU has
    posted a token at the earliest, and STORE and GEMM read no sooner than two cycles after their
    start.

    Members
    -------
    results : In(write_port)
        Writes to the result scratchpad.
    lookup : In(1)
        Of that write, each lane is to be replaced by its entry.
    table : In(range(TABLES))
        In which table.
    fills : In(1)
        Write `word` to word `results.index` of the tables.
    word : In(32)
        Four entries, the first in the lowest byte.
    out : Out(write_port)
        The writes, later.
    """

    def __init__(self, config: Config):
        self.lanes = config.batch * config.block_out
        port = write_port(8 * config.tile_bytes(Buffer.OUT))
        super().__init__({
            "results": In(port), "lookup": In(1), "table": In(range(TABLES)), "fills": In(1),
            "word": In(LANE_BITS), "out": Out(port)})

    def elaborate(self, platform):
        m = Module()
        enables = Signal(LATENCY)
        m.d.sync += enables.eq(Cat(self.results.enable, enables))
        index, data, lookup = self.results.index, self.results.data, self.lookup
        for age in range(1, LATENCY + 1):
            index, data, lookup = (register(m, each, f"{name}_{age}") for name, each in (
                ("index", index), ("data", data), ("lookup", lookup)))
        m.d.comb += [
            self.out.enable.eq(enables[-1]), self.out.index.eq(index),
            self.out.data.eq(Cat(
                Mux(lookup, self._entry(m, lane, data.word_select(lane, ENTRY_BITS)),
                    data.word_select(lane, ENTRY_BITS)) for lane in range(self.lanes))),
        ]
        return m

    def _entry(self, m, lane, looked_up):
        """The entry for a result, which is `looked_up` when its word is there."""
        memory = Memory(shape=LANE_BITS, depth=TABLES * TABLE_WORDS, init=[], attrs=UNRELATED)
        m.submodules[f"lane_{lane}"] = memory
        written, read = memory.write_port(), memory.read_port()
        result = self.results.data.word_select(lane, ENTRY_BITS)
        # The least result, -128, has the first entry.
        m.d.comb += [
            written.addr.eq(self.results.index), written.data.eq(self.word),
            written.en.eq(self.fills),
            read.addr.eq(Cat(result[CHOICE_BITS:-1], ~result[-1], self.table)), read.en.eq(1),
        ]
        word = register(m, read.data, f"word_{lane}")
        return word.word_select(looked_up[:CHOICE_BITS], ENTRY_BITS)
