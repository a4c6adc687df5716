"""FETCH: reads the program, checks every word and hands it to its engine."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import INSTRUCTION_BYTES, ISA, Engine, Sync, SyncAction
from .interfaces import FAULT, burst_request, commands, read_beat
from .layouts import POSITION_BITS, illegal, opcode_of, unpack
from .logic import is_among

BURST = 8           # instructions in a burst: 256 bytes, never across 4 KiB
AHEAD = 2 * BURST   # instructions fetched before they are wanted


class Fetch(Component):
    """Brings instructions from DRAM to the engines' queues, in program order.

    Reads ahead in bursts of up to eight instructions while there is room for them. A word that is
    no instruction stops it with a fault. A sync waits until all engines are idle; an end then
    raises `finished` for good. It begins when `running` rises after a reset.

    Rate: one instruction a cycle, unless the bus is too narrow to bring as many. Latency: an
    instruction can leave two cycles after its last beat came. Back-pressure: an instruction waits
    for room in the queue of its engine, and all behind it wait with it.

    Members
    -------
    running : In(1)
        The program runs. Low: request and dispatch nothing.
    base : In(address_bits)
        Address of the program, a multiple of 4096. Stable while running.
    count : In(32)
        Instructions in the program. Stable while running.
    requests : Out(stream of burst_request)
        To the reader: bursts of the program, in order.
    beats : In(stream of read_beat)
        From the reader: their beats, in order. Always taken, since room was reserved.
    load, gemm, alu, store : Out(stream of COMMAND)
        To the queue of each engine: its instructions, with their numbers in the program.
    idle : In(1)
        Every queue is empty and every engine idle.
    dispatched : Out(1)
        An instruction leaves, to an engine or as a sync that is over.
    finished : Out(1)
        The end of the program has been executed. Stays until reset.
    fault : Out(FAULT)
        The instruction at hand cannot be executed: it is illegal, could not be read, or is
        missing where the program has no end. Stays until reset.
    halt : In(1)
        Request and dispatch nothing more; beats that still arrive are swallowed.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            "running": In(1),
            "base": In(config.address_bits),
            "count": In(POSITION_BITS),
            "requests": Out(stream.Signature(burst_request(config))),
            "beats": In(stream.Signature(read_beat(config))),
            **{engine.name.lower(): Out(commands) for engine in Engine},
            "idle": In(1),
            "dispatched": Out(1),
            "finished": Out(1),
            "fault": Out(FAULT),
            "halt": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = SyncFIFOBuffered(
            width=8 * INSTRUCTION_BYTES + 1, depth=AHEAD)
        self._request(m)
        self._assemble(m, buffer)
        self._dispatch(m, buffer)
        return m

    def _request(self, m):
        """Ask for the next burst when the buffer has room for it and all that is on its way."""
        self.asked = asked = Signal(POSITION_BITS)          # instructions requested so far
        self.position = Signal(POSITION_BITS)               # the one to dispatch next
        left = Signal(POSITION_BITS)
        size = Signal(range(BURST + 1))
        room = Signal(range(AHEAD + 1))
        m.d.comb += [
            left.eq(self.count - asked),
            size.eq(BURST),
            room.eq(AHEAD - (asked - self.position)),
            self.requests.payload.address.eq(self.base + asked * INSTRUCTION_BYTES),
            self.requests.payload.beats.eq(
                size * (INSTRUCTION_BYTES // self.config.bus_bytes) - 1),
            self.requests.valid.eq(self.running & ~self.halt & (left != 0) & (room >= size)),
        ]
        with m.If(left < BURST):
            m.d.comb += size.eq(left)
        with m.If(self.requests.valid & self.requests.ready):
            m.d.sync += asked.eq(asked + size)

    def _assemble(self, m, buffer):
        """Collect the beats of an instruction; the buffer has room, for it was reserved."""
        beats = INSTRUCTION_BYTES // self.config.bus_bytes
        payload = self.beats.payload
        if beats == 1:
            word, error, last = payload.data, payload.error, Const(1)
        else:
            held = Signal((beats - 1) * self.config.bus_bits, reset_less=True)
            held_error = Signal()
            number = Signal(range(beats))
            with m.If(self.beats.valid):
                m.d.sync += [
                    held.eq(Cat(held, payload.data)[self.config.bus_bits:]),
                    number.eq(number + 1),
                    held_error.eq((held_error | payload.error) & (number != beats - 1)),
                ]
            word, error = Cat(held, payload.data), held_error | payload.error
            last = number == beats - 1
        m.d.comb += [
            self.beats.ready.eq(1),
            buffer.w_data.eq(Cat(word, error)),
            buffer.w_en.eq(self.beats.valid & last & ~self.halt),
        ]

    def _dispatch(self, m, buffer):
        """Hand the oldest instruction to its engine, or execute it here."""
        word = buffer.r_data[:8 * INSTRUCTION_BYTES]
        broken = buffer.r_data[-1]
        legal, taken = Signal(), Signal()
        at_end = Signal()
        valid = Signal()
        m.d.comb += valid.eq(buffer.r_rdy & self.running & ~self.halt & ~self.finished)
        with m.Switch(opcode_of(word)):
            for instruction in ISA:
                with m.Case(instruction.opcode):
                    m.d.comb += legal.eq(~illegal(instruction, word))
                    if instruction is Sync:
                        m.d.comb += taken.eq(self.idle)
                        m.d.comb += at_end.eq(is_among(unpack(Sync, word).action, SyncAction, {
                            SyncAction.BARRIER: False, SyncAction.END: True}))
                    else:
                        queue = getattr(self, instruction.engine.name.lower())
                        m.d.comb += queue.valid.eq(valid & legal & ~broken)
                        m.d.comb += taken.eq(queue.ready)
        for engine in Engine:
            queue = getattr(self, engine.name.lower())
            m.d.comb += [queue.payload.word.eq(word), queue.payload.position.eq(self.position)]
        m.d.comb += self.dispatched.eq(valid & legal & ~broken & taken)
        m.d.comb += buffer.r_en.eq(self.dispatched)
        with m.If(self.dispatched):
            m.d.sync += self.position.eq(self.position + 1)
            with m.If(at_end):
                m.d.sync += self.finished.eq(1)
        self._fault(m, valid, legal, broken)

    def _fault(self, m, valid, legal, broken):
        ran_out = self.running & ~self.finished & (self.position == self.count)
        m.d.comb += self.fault.position.eq(self.position)
        with m.If(valid & broken):
            m.d.comb += self.fault.cause.eq(Fault.READ_ERROR)
        with m.Elif(valid & ~legal):
            m.d.comb += self.fault.cause.eq(Fault.ILLEGAL)
        with m.Elif(ran_out):
            m.d.comb += self.fault.cause.eq(Fault.NO_END)
