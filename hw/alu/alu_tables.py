"""The ALU's lookup tables, between results and `out`."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.instructions import TABLE_WORDS, TABLES, WORD_ENTRIES, Buffer
from ..logic import exponent, register
from ..scratchpad import UNRELATED, write_port
from .requantizer import LANE_BITS

LATENCY = 2                 # cycles from a result to its write
ENTRY_BITS = LANE_BITS // WORD_ENTRIES
CHOICE_BITS = exponent(WORD_ENTRIES)


class AluTables(Component):
    """Holds `TABLES` tables of 256 entries, the same for every lane, and looks results up in them.

    Each lane has its own copy of all tables in a memory, so that all lanes look up at once. A word
    has four entries: at that width one block RAM holds eight tables, and a table is filled in 64
    cycles instead of 256.

    Rate: a result, or a word for the tables, a cycle. Latency: a write leaves `LATENCY` cycles
    after it came, whether it was looked up or not. There is no back-pressure. A word written in one
    cycle is visible to a lookup in the next.

    The latency is hidden: an engine that reads `out` starts at the earliest in the cycle after the
    ALU has posted a token, and STORE and GEMM read at the earliest two cycles after their start.

    Members
    -------
    results : In(write_port)
        Writes to the result scratchpad.
    lookup : In(1)
        Replace each lane of that write by its table entry.
    table : In(range(TABLES))
        The table to use.
    fills : In(1)
        Write `word` to word `results.index` of the tables.
    word : In(32)
        Four entries, the first in the lowest byte.
    out : Out(write_port)
        The same writes, `LATENCY` cycles later.
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
        """The table entry for a result; `looked_up` is that result in the cycle in which its word
        is valid."""
        memory = Memory(shape=LANE_BITS, depth=TABLES * TABLE_WORDS, init=[], attrs=UNRELATED)
        m.submodules[f"lane_{lane}"] = memory
        written, read = memory.write_port(), memory.read_port()
        result = self.results.data.word_select(lane, ENTRY_BITS)
        # The smallest result, -128, selects the first entry.
        m.d.comb += [
            written.addr.eq(self.results.index), written.data.eq(self.word),
            written.en.eq(self.fills),
            read.addr.eq(Cat(result[CHOICE_BITS:-1], ~result[-1], self.table)), read.en.eq(1),
        ]
        word = register(m, read.data, f"word_{lane}")
        return word.word_select(looked_up[:CHOICE_BITS], ENTRY_BITS)
