"""The ALU engine: element-wise operations and requantization of accumulator tiles."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Component, In, Out, connect

from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import Buffer, Instruction
from .accumulator import granted_write_port
from .alu_decode import TASK, decode, operands
from .alu_issue import AluIssue
from .alu_lanes import LATENCY, AluLanes
from .alu_results import DEPTH, AluResults
from .interfaces import commands, events, granted_read_port, tokens
from .layouts import unpack
from .scratchpad import write_port
from .sequencer import Sequencer

# Cycles from the start of an instruction with one undisturbed step to its end: into the
# sequencer, into the buffer of steps, through the lanes, into the results' memory.
START_TO_END = 1 + 1 + LATENCY + 1


class AluEngine(Component):
    """Executes alu, alui and requantize, in order, beginning one before another has ended.

        commands ─► Sequencer ─► AluIssue ─► AluLanes ─► AluResults ─► acc, out
                                  │  ▲ tickets             │
                     left, right ◄┘  └─────────────────────┘

    Rate: a vector a cycle, while its reads are in different banks and nobody more urgent wants
    these; its write has a port of its own. Each outer iteration of a requantize takes three
    cycles more, for its parameters. A read of a tile that an earlier step has yet to write waits
    until the cycle after that write, LATENCY + 2 cycles after the earlier step was issued.
    Instructions follow one another without a bubble.

    Latency: N steps that nothing delays end START_TO_END + N - 1 cycles after the start; so does
    an instruction without iterations, as if it had one step.

    Back-pressure: a command is taken when the sequencer has handed out the last slot of the one
    before. All that the accumulator refuses is asked for again.

    The end of an instruction is the cycle of its last write. An index outside a scratchpad is
    reported when everything before it has been written; nothing from that step on happens. While
    `halt`, no command is taken, nothing is written and nothing posted.

    Members
    -------
    commands : In(commands)
    tokens : Out(tokens)
    events : Out(events)
    left, right : Out(granted_read_port)
        Left and right operand from the accumulator; parameters come through `right`.
    acc : Out(granted_write_port), out : Out(write_port)
    halt : In(1)
    """

    def __init__(self, config: Config):
        self.config = config
        acc = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "commands": In(commands),
            "tokens": Out(tokens),
            "events": Out(events),
            "left": Out(granted_read_port(acc)),
            "right": Out(granted_read_port(acc)),
            "acc": Out(granted_write_port(acc)),
            "out": Out(write_port(8 * config.tile_bytes(Buffer.OUT))),
            "halt": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(operands(self.config), TASK)
        m.submodules.issue = issue = AluIssue(self.config)
        m.submodules.lanes = lanes = AluLanes(self.config)
        m.submodules.results = results = AluResults(self.config)
        connect(m, sequencer.slots, issue.slots)
        connect(m, issue.tickets, results.tickets)
        for inner, outer in ((issue.left, self.left), (issue.right, self.right),
                             (results.acc, self.acc), (results.out, self.out)):
            connect(m, inner, wiring.flipped(outer))
        m.d.comb += [
            lanes.issued.eq(issue.issued), lanes.work.eq(issue.work),
            lanes.fetched.eq(issue.fetched),
            lanes.left.eq(self.left.data), lanes.right.eq(self.right.data),
            results.finished.eq(lanes.finished), results.results.eq(lanes.results),
            results.halt.eq(self.halt),
        ]
        self._accept(m, sequencer.nests, issue.stopped)
        self._complete(m, results)
        return m

    def _accept(self, m, nests, stopped):
        """Take a command, with its tokens, when the sequencer can take it."""
        command = self.commands.payload
        able, start = Signal(), Signal()
        decode(m, command, nests.payload)
        m.d.comb += [
            able.eq(self.commands.valid & nests.ready & ~stopped & ~self.halt),
            start.eq(able & self.tokens.granted),
            nests.valid.eq(start),
            self.commands.ready.eq(start),
            self.tokens.wait.eq(Mux(self.commands.valid, _wait(command), 0)),
            self.tokens.take.eq(start),
            self.events.start.eq(start),
            self.events.start_position.eq(command.position),
            self.events.wait.eq(Mux(able, self.tokens.missing, 0)),
        ]

    def _complete(self, m, results):
        """Post tokens, and count the instructions that have started and not ended."""
        running = Signal(range(DEPTH + 2))          # each has a ticket or is in the sequencer
        m.d.sync += running.eq(running + self.events.start - results.end)
        m.d.comb += [
            self.tokens.post.eq(results.post),
            self.events.end.eq(results.end),
            self.events.end_position.eq(results.position),
            self.events.busy.eq(running != 0),
            self.events.fault.cause.eq(Mux(results.fault, Fault.INDEX, Fault.NONE)),
            self.events.fault.position.eq(results.position),
        ]


def _wait(command):
    """The field that all instructions share."""
    return unpack(Instruction, command.word).wait
