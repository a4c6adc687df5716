"""The segment table: windows into DRAM, set by a driver, looked up by LOAD and STORE."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.instructions import SEGMENTS
from ..isa.registers import REGISTER_BYTES
from .interfaces import segment_lookup

WORD = 8 * REGISTER_BYTES
PARTS = ("low", "high", "size", "access")       # the registers of a segment, in order


class SegmentTable(Component):
    """Holds the segment registers of `isa.registers`, in memories, since multiplexing eight
    segments would take more logic than storing them.

    Rate: per cycle a write and a read by the driver, and a lookup by each engine. Reads are
    combinational; a write is visible in the next cycle. After a reset all registers read as zero:
    memory keeps its contents, so a valid bit tells what has been written since.

    Members
    -------
    write : In(one bit for each of PARTS)
        Write these registers of a segment in this cycle.
    write_number, write_data : In(range(SEGMENTS)), In(WORD)
        The segment, and the new value.
    read_number : In(range(SEGMENTS))
        The segment that the driver reads.
    read : Out(array of WORD, one for each of PARTS)
        Its registers.
    load, store : In(segment_lookup)
        The segments that engines look up.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "write": In(len(PARTS)), "write_number": In(range(SEGMENTS)), "write_data": In(WORD),
            "read_number": In(range(SEGMENTS)), "read": Out(data.ArrayLayout(WORD, len(PARTS))),
            "load": In(segment_lookup(config)), "store": In(segment_lookup(config)),
        })

    def elaborate(self, platform):
        m = Module()
        low = min(self.config.address_bits, WORD)
        widths = {"low": low, "high": self.config.address_bits - low, "size": WORD}
        numbers = (self.read_number, self.load.number, self.store.number)
        kept = {}                       # by the names of registers: the values read
        for part, (name, width) in enumerate(widths.items()):
            kept[name] = self._part(m, name, width, self.write[part], numbers) if width > 0 else (
                [Const(0, 0)] * len(numbers))
        writable = Signal(SEGMENTS)
        for number in range(SEGMENTS):
            with m.If(self.write[-1] & (self.write_number == number)):
                m.d.sync += writable[number].eq(self.write_data)
        kept["access"] = [writable.bit_select(number, 1) for number in numbers]
        m.d.comb += [self.read[part].eq(kept[name][0]) for part, name in enumerate(PARTS)]
        for reader, lookup in enumerate((self.load, self.store), 1):
            segment = lookup.segment
            m.d.comb += [
                segment.base[:WORD].eq(kept["low"][reader]),
                segment.base[WORD:].eq(kept["high"][reader]),
                segment.size.eq(kept["size"][reader]), segment.writable.eq(kept["access"][reader])]
        return m

    def _part(self, m, name, width, writes, numbers):
        """One register of all segments. Returns its values for the given segments."""
        m.submodules[name] = memory = Memory(shape=width, depth=SEGMENTS, init=[])
        port, known = memory.write_port(), Signal(SEGMENTS, name=f"{name}_known")
        m.d.comb += [port.addr.eq(self.write_number), port.data.eq(self.write_data),
                     port.en.eq(writes)]
        with m.If(writes):
            m.d.sync += known.bit_select(self.write_number, 1).eq(1)
        found = []
        for reader, number in enumerate(numbers):
            read = memory.read_port(domain="comb")
            m.d.comb += read.addr.eq(number)
            # A segment of size zero has no address, so engines need not look whether that is known.
            is_known = known.bit_select(number, 1) if reader == 0 or name == "size" else 1
            found.append(Mux(is_known, read.data, 0))
        return found
