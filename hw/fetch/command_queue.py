"""The command queue between FETCH and an engine."""

from collections.abc import Mapping
from typing import Any

from amaranth.lib import data

from ...isa.config import Config
from ..fifo import StagedFifo
from ..layouts import COMMAND


class CommandQueue(StagedFifo):
    """Holds up to `queue_depth` commands, in order.

    Rate: one in and one out a cycle. Latency: a command that enters an empty queue can leave two
    cycles later: the path into the queue is long, and includes the ALU's decoder.

    Parameters
    ----------
    shape : of a command, by default COMMAND
    attributes : of the memory for two commands, if it is to be a memory

    Members
    -------
    put : In(stream of shape)
        Commands that enter. Not ready while the queue is full.
    take : Out(stream of shape)
        The oldest command. It stays until it is taken.
    coming : Out(shape)
        If the oldest command is taken now, or there is none: the oldest one of the next cycle, if
        there is one.
    empty : Out(1)
        No command is in the queue.
    """

    def __init__(self, config: Config, shape: data.StructLayout = COMMAND,
                 attributes: Mapping[str, Any] | None = None):
        super().__init__(shape, config.queue_depth, attributes)
