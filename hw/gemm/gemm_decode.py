"""GEMM's decoder: classifies the loop counts of commands before they are queued."""

from amaranth.hdl import Module, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.instructions import LOOPS, Gemm, Window
from ..interfaces import commands
from ..layouts import COMMAND, opcode_of, unpack
from ..sequencer import judge_counts, judgement_layout

# A command, and which of its loop counts are one, and which zero.
JUDGED = data.StructLayout({**{name: field.shape for name, field in COMMAND},
                            **judgement_layout(steps=True)})


def counts_of(config: Config, command: data.View) -> dict[str, Value]:
    """The loop counts of a gemm or a window, by level. A window has a zero in the field of a gemm's
    count, and means one step."""
    gemm = unpack(Gemm, command.word)
    steps = gemm.count
    if config.has_windows:
        steps |= opcode_of(command.word) == Window.opcode
    return {"step": steps, **dict(zip(LOOPS, gemm.loops, strict=True))}


class GemmDecoder(Component):
    """Compares the loop counts of commands ahead of GEMM's queue: at its head, there is no time for
    that before a start.

    Rate: one a cycle. Combinational: a command passes in the cycle in which it is taken.

    Members
    -------
    commands : In(stream of COMMAND)
        GEMM's instructions, in order.
    decoded : Out(stream of JUDGED)
        The same, with their counts classified.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({"commands": In(commands), "decoded": Out(stream.Signature(JUDGED))})

    def elaborate(self, platform):
        m = Module()
        command, judged = self.commands.payload, self.decoded.payload
        m.d.comb += [judged.word.eq(command.word), judged.position.eq(command.position),
                     *judge_counts(judged, counts_of(self.config, command)),
                     self.decoded.valid.eq(self.commands.valid),
                     self.commands.ready.eq(self.decoded.ready)]
        return m
