"""The command queue between FETCH and an engine."""

from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from ..isa.config import Config
from ..isa.instructions import Engine, Instruction
from .buffered import RegisteredQueue
from .interfaces import commands
from .layouts import COMMAND, unpack


class CommandQueue(Component):
    """Holds up to `queue_depth` commands, in order.

    Rate: one in and one out a cycle. Latency: a command that enters an empty queue can leave in
    the next cycle.

    Members
    -------
    put : In(stream of COMMAND)
        Commands that enter. Refused while the queue is full.
    take : Out(stream of COMMAND)
        The oldest command. It stays until it is taken.
    coming_wait : Out(len(Engine))
        The tokens that the oldest command of the next cycle waits for, if the oldest one is taken
        now or there is none.
    empty : Out(1)
        No command is in the queue.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({"put": In(commands), "take": Out(commands), "empty": Out(1),
                          "coming_wait": Out(len(Engine))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = RegisteredQueue(COMMAND, self.config.queue_depth)
        connect(m, flipped(self.put), fifo.put)
        connect(m, fifo.take, flipped(self.take))
        m.d.comb += [self.empty.eq(~fifo.take.valid),
                     self.coming_wait.eq(unpack(Instruction, fifo.coming.word).wait)]
        return m
