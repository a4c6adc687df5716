"""The base of LOAD and STORE: one side requests rows of DRAM, the other moves tiles."""

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import stream
from amaranth.lib.wiring import Component, In, Member, Out, connect

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import Instruction
from ..fifo import RegisterSlice
from ..interfaces import (
    FAULT,
    WIDEST_BUS_BYTES,
    burst_request,
    commands,
    events,
    segment_lookup,
    tokens,
)
from ..layouts import buffers_of, unpack
from ..logic import priority_mux
from ..start import start_next
from .burst_walker import BurstWalker, burst_layout, set_box

QUEUE_DEPTH = 4             # instructions between the side that requests and the side that moves


class TransferEngine(Component):
    """The base of LOAD and STORE: an instruction that starts goes to both sides at once.

                  ┌─► BurstWalker ► two places ──► requests (bursts)
        commands ─┤
                  └─► queue of 4 ─► mover ──► the subclass's ports

    The next instruction starts when the walker holds no box, at the earliest one cycle after the
    last row of the previous one, the queue has room, and the tokens are available. A mover has the
    members `steps`, `instructions`, `stop` and `fault`.

    Parameters
    ----------
    instruction : the class of the instructions, Load or Store
    members : what else the engine is connected to

    Members
    -------
    commands : In(stream of COMMAND)
        The engine's instructions, in order. Each is taken in the cycle of its start.
    tokens : Out(tokens)
        Taken at the start of an instruction, posted at its end.
    events : Out(events)
        What the control unit counts and reports.
    halts : In(1)
        Start, request and post nothing from the next cycle on.
    window : Out(segment_lookup)
        The window of DRAM of the next instruction.
    requests : Out(stream of burst_request)
        Bursts in the order of the rows. A burst that is not taken stops the walker, nothing else.
    """

    def __init__(self, config: Config, instruction: type[Instruction],
                 members: dict[str, Member]):
        assert config.bus_bytes <= WIDEST_BUS_BYTES, "`events.bytes` counts no more in a cycle"
        self.config = config
        self.instruction = instruction
        super().__init__({
            "commands": In(commands), "tokens": Out(tokens), "events": Out(events),
            "halts": In(1), "window": Out(segment_lookup(config)),
            "requests": Out(stream.Signature(burst_request(config))),
            **members,
        })

    def _join(self, m: Module, mover: Component, queue: Component):
        """Connect walker and queue to the mover. Returns the walker, the stream of its bursts, and
        a signal that is high when an instruction starts."""
        m.submodules.walker = walker = BurstWalker(self.config, buffers_of(self.instruction))
        m.submodules.queue = queue
        m.submodules.bursts = bursts = RegisterSlice(burst_layout(self.config))
        self.fault = Signal(FAULT)
        self.stop = Signal()        # from the cycle after a fault or `halts` until reset
        self.goes_on = Signal(init=1)   # the inverse, from its own register, for critical paths
        started = start_next(m, self, walker.boxes.ready & queue.put.ready & self.goes_on)
        command = self.commands.payload
        fields = unpack(self.instruction, command.word)
        segment = self.window.segment
        set_box(m, walker.boxes.payload, fields, command.position, base=segment.base,
                size=self._window_bytes(segment))
        m.d.comb += [
            self.window.number.eq(fields.segment),
            walker.stop.eq(self.stop), mover.stop.eq(self.stop), mover.goes_on.eq(self.goes_on),
            walker.boxes.valid.eq(started),
            queue.put.valid.eq(started),
            self.events.fault.eq(self.fault),
        ]
        mover.steps.prepare(m, command, queue.put.payload)
        connect(m, queue.take, mover.instructions)
        self._place(m, walker.bursts, bursts.put)
        return walker, bursts.take, started

    def _place(self, m: Module, cut, places) -> None:
        """Queue the bursts of the walker."""
        connect(m, cut, places)

    def _window_bytes(self, segment) -> Value:
        """Bytes of the segment that an instruction may access."""
        return segment.size

    def _request(self, m: Module, bursts, *, empty: Value, may_go: ValueLike = 1) -> None:
        """Offer bursts while `may_go`. An empty one is dropped."""
        goes = may_go & self.goes_on
        m.d.comb += [
            self.requests.payload.address.eq(bursts.payload.address),
            self.requests.payload.beats.eq(bursts.payload.beats),
            self.requests.valid.eq(bursts.valid & ~empty & goes),
            bursts.ready.eq((self.requests.ready | empty) & goes),
        ]

    def _keep_first_fault(self, m: Module, *sources) -> None:
        """Record the first fault. Of several in a cycle, that of the oldest instruction, the first
        source."""
        raised = [source.cause != Fault.NONE for source in sources]
        # The position is recorded even without a fault, when it is undefined.
        with m.If(~self.stop):
            m.d.sync += Value.cast(self.fault).eq(priority_mux([
                (holds, Value.cast(source))
                for holds, source in zip(raised, sources, strict=True)]))
        with m.If(self.halts | Cat(raised).any()):
            m.d.sync += [self.stop.eq(1), self.goes_on.eq(0)]
