"""The command queue between FETCH and an engine."""

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from ..isa.config import Config
from .buffered import RegisteredQueue
from .layouts import COMMAND


class CommandQueue(Component):
    """Holds up to `queue_depth` commands, in order.

    Rate: one in and one out a cycle. Latency: a command that enters an empty queue can leave in
    the next cycle.

    Parameters
    ----------
    shape : of a command, if it is not COMMAND

    Members
    -------
    put : In(stream of shape)
        Commands that enter. Refused while the queue is full.
    take : Out(stream of shape)
        The oldest command. It stays until it is taken.
    coming : Out(shape)
        If the oldest command is taken now, or there is none: the oldest one of the next cycle, if
        there is one then.
    empty : Out(1)
        No command is in the queue.
    """

    def __init__(self, config: Config, shape: data.StructLayout = COMMAND):
        self.config, self.shape = config, shape
        super().__init__({"put": In(stream.Signature(shape)), "take": Out(stream.Signature(shape)),
                          "coming": Out(shape), "empty": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = RegisteredQueue(self.shape, self.config.queue_depth)
        connect(m, flipped(self.put), fifo.put)
        connect(m, fifo.take, flipped(self.take))
        m.d.comb += [self.empty.eq(~fifo.take.valid), self.coming.eq(fifo.coming)]
        return m
