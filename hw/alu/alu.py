"""The ALU engine: element-wise operations and requantization of accumulator tiles."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Component, In, Out, connect

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer
from ..accumulator import granted_write_port, operand_port
from ..interfaces import events, tokens
from ..scratchpad import write_port
from ..sequencer import Sequencer
from ..start import start_next
from .alu_decode import decoded_layout, operands, task_layout
from .alu_issue import AluIssue
from .alu_lanes import AluLanes, latency
from .alu_results import DEPTH, AluResults
from .alu_tables import AluTables


def start_to_end(config: Config, steps: int = 1) -> int:
    """Cycles from start to end of an instruction that never stalls: sequencer, description, front,
    lanes, head of the results."""
    return 1 + 1 + 1 + latency(config) + 1 + (steps - 1) * config.vector_cycles


class AluEngine(Component):
    """Executes alu, alui, requantize and table, in order, overlapping consecutive instructions.

        commands ─► Sequencer ─► AluIssue ─► AluLanes ─► AluResults ─► acc
                                  │  ▲ tickets             │  │
                     left, right ◄┘  └─────────────────────┘  └─► AluTables ─► out

    Rate: a vector every `vector_cycles` cycles, as long as its reads are in different banks and no
    port of higher priority uses these; writes have their own port. Each outer iteration of a
    requantize takes three more cycles for its parameters. A read of a tile that an earlier step has
    yet to write waits until the second cycle after that write, `latency` + 3 cycles after the
    earlier step was issued. There is no bubble between instructions.

    Latency: N steps without a stall end `start_to_end(config, N)` cycles after the start; an
    instruction without iterations ends as if it had one step.

    Back-pressure: a command is taken when the sequencer has issued the last slot of the previous
    one. Accesses that the accumulator does not grant are requested again.

    The end of an instruction is the cycle of its last write; where there are tables, `out` is
    written `alu_tables.LATENCY` cycles after that, before any engine can read it. An index out of
    range is reported once all earlier results have been written; that step and all later ones have
    no effect. From the cycle after `halts` on, no command is taken, nothing is posted, and only
    results already in the tables are written.

    Members
    -------
    commands : In(stream of decoded_layout)
        The ALU's instructions, decoded, in order. Each is taken in the cycle of its start.
    tokens : Out(tokens)
        Taken at the start of an instruction, posted at its end.
    events : Out(events)
        What the control unit counts and reports. The ALU never waits for memory.
    left : Out(operand_port)
        Left operands from the accumulator.
    right : Out(operand_port)
        Right operands from the accumulator, and the parameters of a requantize.
    acc : Out(granted_write_port)
        Results for the accumulator. A write that is not granted stalls all later ones.
    out : Out(write_port)
        Results for the result scratchpad, which is always ready.
    halts : In(1)
        Stop taking commands, writing and posting from the next cycle on.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "commands": In(stream.Signature(decoded_layout(config))),
            "tokens": Out(tokens),
            "events": Out(events),
            "left": Out(operand_port(config)),
            "right": Out(operand_port(config)),
            "acc": Out(granted_write_port(config)),
            "out": Out(write_port(8 * config.tile_bytes(Buffer.OUT))),
            "halts": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(
            operands(self.config), task_layout(self.config), steps=False)
        m.submodules.issue = issue = AluIssue(self.config)
        m.submodules.lanes = lanes = AluLanes(self.config)
        m.submodules.results = results = AluResults(self.config)
        connect(m, sequencer.slots, issue.slots)
        m.d.comb += [sequencer.takes.eq(issue.takes), sequencer.stops.eq(issue.stops),
                     issue.continues.eq(sequencer.continues)]
        connect(m, issue.tickets, results.tickets)
        out = self._look_up(m, results) if self.config.tables else results.out
        for inner, outer in ((issue.left, self.left), (issue.right, self.right),
                             (results.acc, self.acc), (out, self.out)):
            connect(m, inner, wiring.flipped(outer))
        m.d.comb += [
            lanes.issued.eq(issue.issued), lanes.work.eq(issue.work),
            lanes.fetched.eq(issue.fetched),
            lanes.left.eq(self.left.data), lanes.right.eq(self.right.data),
            results.finished.eq(lanes.finished), results.results.eq(lanes.results),
            results.halts.eq(self.halts),
        ]
        self._accept(m, sequencer.nests, issue.stops)
        self._complete(m, results)
        return m

    def _look_up(self, m, results):
        """Route results through the tables. Returns the write port behind them."""
        m.submodules.tables = tables = AluTables(self.config)
        connect(m, results.out, tables.results)
        m.d.comb += [tables.lookup.eq(results.lookup), tables.table.eq(results.table),
                     tables.fills.eq(results.fills), tables.word.eq(results.word)]
        return tables.out

    def _accept(self, m, nests, stops):
        """Take a command and its tokens when the sequencer is ready."""
        closed = Signal()                   # after a halt, or an index out of range
        # `stops` arrives late. The sequencer takes no nest in that cycle or later, so the tokens
        # need not be barred until `closed` is set.
        m.d.comb += self.tokens.bars.eq(closed | self.halts)
        m.d.sync += closed.eq(self.tokens.bars | stops)
        decoded = self.commands.payload
        m.d.comb += [nests.payload.eq(decoded.nest),
                     nests.valid.eq(start_next(m, self, nests.ready, decoded.wait,
                                               decoded.nest.tag.position, closed))]

    def _complete(self, m, results):
        """Post tokens, and count the instructions in flight."""
        # Each has a ticket or is about to get one. Both events are counted one cycle later.
        running, started, ended = Signal(range(DEPTH + 6)), Signal(), Signal()
        m.d.sync += [started.eq(self.events.start), ended.eq(results.end)]
        with m.If(started & ~ended):
            m.d.sync += running.eq(running + 1)
        with m.Elif(ended & ~started):
            m.d.sync += running.eq(running - 1)
        m.d.comb += [
            self.tokens.post.eq(results.post),
            self.events.end.eq(results.end),
            self.events.end_position.eq(results.position),
            self.events.busy.eq(started | (running != ended)),
            self.events.fault.cause.eq(Mux(results.fault, Fault.INDEX, Fault.NONE)),
            self.events.fault.position.eq(results.position),
        ]
