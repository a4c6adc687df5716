"""The command queue between FETCH and an engine."""

from amaranth.hdl import Module
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from .interfaces import commands
from .layouts import COMMAND


class CommandQueue(Component):
    """Holds up to `queue_depth` commands in block RAM, in order.

    Rate: one in and one out a cycle. Latency: a command that enters an empty queue can leave two
    cycles later.

    Members
    -------
    put : In(stream of COMMAND)
        Commands that enter. Refused while the queue is full.
    take : Out(stream of COMMAND)
        The oldest command. It stays until it is taken.
    empty : Out(1)
        No command is in the queue.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({"put": In(commands), "take": Out(commands), "empty": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=COMMAND.size,
                                                    depth=self.config.queue_depth)
        m.d.comb += [
            fifo.w_data.eq(self.put.payload), fifo.w_en.eq(self.put.valid),
            self.put.ready.eq(fifo.w_rdy),
            self.take.payload.eq(fifo.r_data), self.take.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.take.ready),
            self.empty.eq(fifo.level == 0),
        ]
        return m
