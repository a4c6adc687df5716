"""The accelerator's memory bus from its own clock to a system's."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import Component, In, Out

from ...hw.bus.axi import read_channels, set_constants, write_channels
from ...isa.config import Config
from .async_fifo import AsyncFifo, synchronize

ADDRESSES, BEATS, ANSWERS = 4, 16, 4        # places of each queue


class MemoryCrossing(Component):
    """The accelerator's memory bus on the clock of a system: five queues.

    Rate: a beat a cycle of the slower clock. It adds some six cycles of each clock to a read. What
    is the same in every burst does not cross. Bursts and beats keep their order on each channel; a
    beat of writes may be there before its address.

    Members
    -------
    reads, writes : In(read_channels), In(write_channels)
        From the accelerator, in the domain `accelerator`.
    memory_reads, memory_writes : Out(read_channels), Out(write_channels)
        To memory, in the domain `system`.
    """

    def __init__(self, config: Config, synchronizer=synchronize):
        self.config, self.synchronizer = config, synchronizer
        super().__init__({
            "reads": In(read_channels(config)), "writes": In(write_channels(config)),
            "memory_reads": Out(read_channels(config)),
            "memory_writes": Out(write_channels(config))})

    def elaborate(self, platform):
        m = Module()
        there, back = ("accelerator", "system"), ("system", "accelerator")
        for lead, depth, way in (("ar", ADDRESSES, there), ("r", BEATS, back)):
            self._channel(m, lead, depth, way, self.reads, self.memory_reads)
        for lead, depth, way in (("aw", ADDRESSES, there), ("w", BEATS, there),
                                 ("b", ANSWERS, back)):
            self._channel(m, lead, depth, way, self.writes, self.memory_writes)
        set_constants(m, self.memory_reads, "ar", self.config)
        set_constants(m, self.memory_writes, "aw", self.config)
        return m

    def _channel(self, m, lead, depth, way, accelerator, memory):
        source, sink = (accelerator, memory) if way[0] == "accelerator" else (memory, accelerator)
        names = list(payload_names(lead))
        values, given = (Cat(getattr(bus, name) for name in names) for bus in (source, sink))
        queue = AsyncFifo(len(values), depth, put_domain=way[0], take_domain=way[1],
                          synchronizer=self.synchronizer)
        m.submodules[lead] = queue
        m.d.comb += [
            queue.put.valid.eq(getattr(source, f"{lead}valid")),
            getattr(source, f"{lead}ready").eq(queue.put.ready),
            queue.put.payload.eq(values),
            getattr(sink, f"{lead}valid").eq(queue.take.valid),
            queue.take.ready.eq(getattr(sink, f"{lead}ready")),
            given.eq(queue.take.payload),
        ]


def payload_names(lead: str) -> Iterator[str]:
    """The signals of a channel that are not the same in every burst."""
    fields = {"ar": ("id", "addr", "len"), "aw": ("id", "addr", "len"),
              "r": ("id", "data", "resp", "last"), "w": ("data", "strb", "last"),
              "b": ("id", "resp")}
    return (f"{lead}{field}" for field in fields[lead])
