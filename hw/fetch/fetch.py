"""FETCH: reads the program, checks every word and dispatches it to its engine."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import INSTRUCTION_BYTES, Engine, Sync, SyncAction
from ..fifo import RegisteredFifo
from ..interfaces import FAULT, burst_request, commands, read_beat
from ..layouts import POSITION_BITS, breaches, opcode_of, unpack
from ..logic import exponent, is_among, register
from ..targets import small_memory

BURST = 8           # instructions in a burst: 256 bytes, never across 4 KiB
AHEAD = 2 * BURST   # instructions to prefetch

# The decoded form of an instruction in the buffer. `broken`: a read error.
JUDGEMENT = data.StructLayout({"broken": 1, "illegal": 1, "engines": len(Engine), "sync": 1,
                               "end": 1})


class Fetch(Component):
    """Brings instructions from DRAM to the engines' queues, in program order.

    Prefetches in bursts of up to eight instructions while there is room for them. An illegal word
    stops it with a fault. A sync waits until all engines are idle; an end then sets `finished`
    until reset. It starts when `running` rises after a reset.

    Rate: one instruction a cycle, unless the bus is too narrow to bring as many. Latency: the first
    request comes in the second cycle; an instruction can leave four cycles after its last beat
    arrived: legality and engine are decoded while its word waits in the buffer. A sync leaves in
    the second cycle in which all is idle. Back-pressure: an instruction waits for room in the queue
    of its engine, and stalls all later ones.

    Members
    -------
    running : In(1)
        The program runs. While low, nothing is requested or dispatched.
    base : In(address_bits)
        Address of the program, a multiple of 4096. Stable while running and two cycles before.
    count : In(32)
        Instructions in the program. Stable while running and two cycles before.
    requests : Out(stream of burst_request)
        To the reader: bursts of the program, in order.
    beats : In(stream of read_beat)
        From the reader: their beats, in order. Always taken, since room was reserved.
    load, gemm, alu, store : Out(stream of COMMAND)
        To the queue of each engine: its instructions, with their numbers in the program.
    idle : In(1)
        Every queue is empty and every engine idle.
    dispatched : Out(1)
        An instruction is dispatched to an engine, or a sync completes.
    finished : Out(1)
        The end of the program has been executed. Stays until reset.
    fault : Out(FAULT)
        The current instruction cannot be executed: it is illegal, could not be read, or is missing
        because the program has no end. Stays until reset.
    halts : In(1)
        Request and dispatch nothing from the next cycle on; beats that still arrive are discarded.
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
            "halts": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = RegisteredFifo(JUDGEMENT, AHEAD, reserved=True)
        self.position = Signal(POSITION_BITS)               # of the next instruction to dispatch
        self.halted = Signal()                              # from the cycle after `halts`
        with m.If(self.halts):
            m.d.sync += self.halted.eq(1)
        self._request(m)
        word, complete, broken = self._assemble(m)
        self._judge(m, buffer.put, word, complete, broken)
        self._dispatch(m, buffer, self._keep(m, buffer, word, complete, platform))
        return m

    def _request(self, m):
        """Request the next burst when the buffer has room for it and for all data in flight.

        A burst waits until it is taken. Meanwhile the size of the next one, and whether it fits,
        are computed into registers.
        """
        grid = exponent(BURST)
        bursts = Signal(POSITION_BITS - grid, reset_less=True)      # full bursts left to request
        whole = Signal(reset_less=True)                     # there are any
        rest = Signal(grid, reset_less=True)                # instructions after the full bursts
        size = Signal(range(BURST + 1), reset_less=True)    # instructions in the next burst
        room = Signal(range(AHEAD + 1), init=AHEAD)         # free places that are not reserved
        fits = Signal(init=1)                               # room >= size, unless just requested
        next_size = Signal.like(size)
        request = Signal(burst_request(self.config), reset_less=True)
        waiting, prepares, went = (Signal(name=name) for name in ("waiting", "prepares", "went"))
        m.d.comb += [
            next_size.eq(Mux(whole, BURST, rest)),
            prepares.eq(self.running & ~self.halted & ~waiting & (size != 0) & fits),
            self.requests.payload.eq(request), self.requests.valid.eq(waiting & ~self.halted),
        ]
        m.d.sync += [
            size.eq(next_size),
            room.eq(Mux(prepares, room - size, room) + self.dispatched),
            fits.eq(Mux(whole, Mux(self.dispatched, room >= BURST - 1, room >= BURST),
                        Mux(self.dispatched, room + 1 >= rest, room >= rest))),
        ]
        with m.If(~self.running):
            m.d.sync += [Cat(rest, bursts).eq(self.count), whole.eq(self.count[grid:] != 0),
                         request.address.eq(self.base)]
        with m.If(~waiting):
            m.d.sync += request.beats.eq(size * (INSTRUCTION_BYTES // self.config.bus_bytes) - 1)
        with m.If(prepares):
            m.d.sync += [bursts.eq(bursts - 1), whole.eq(whole & (bursts != 1)), waiting.eq(1)]
            with m.If(~whole):
                m.d.sync += rest.eq(0)
        with m.If(self.requests.valid & self.requests.ready):
            m.d.sync += waiting.eq(0)
        m.d.sync += went.eq(self.requests.valid & self.requests.ready)
        with m.If(went):                                    # the next one is not prepared earlier
            m.d.sync += request.address.eq(request.address + BURST * INSTRUCTION_BYTES)

    def _assemble(self, m):
        """Collect the beats of an instruction, for which room was reserved in the buffer. Returns
        the word, whether it is complete, and whether one of its beats had an error."""
        beats = INSTRUCTION_BYTES // self.config.bus_bytes
        payload = self.beats.payload
        word = Signal(8 * INSTRUCTION_BYTES, reset_less=True)
        number = Signal(range(max(beats, 2)))
        broken, complete = Signal(), Signal()
        first, last = number == 0, number == beats - 1
        m.d.comb += self.beats.ready.eq(1)
        m.d.sync += complete.eq(self.beats.valid & last)
        with m.If(self.beats.valid):
            m.d.sync += [
                word.eq(Cat(word, payload.data)[self.config.bus_bits:]),
                number.eq(Mux(last, 0, number + 1)),
                broken.eq((broken & ~first) | payload.error),
            ]
        return word, complete, broken

    def _judge(self, m, judgements, word, complete, broken):
        """Decode a complete word: whether it is legal, and its engine; a broken word has none.
        Rules are checked in the first cycle, and combined in the second."""
        judgement, legal = Signal(JUDGEMENT), {}
        for instruction in self.config.instructions:
            name = instruction.__name__.lower()
            meant = register(m, opcode_of(word) == instruction.opcode, f"is_{name}")
            breaks = register(m, Cat(breaches(instruction, word, self.config)), f"{name}_breaks")
            legal[instruction] = meant & ~breaks.any()
        broken = register(m, broken, "compared_broken")
        m.d.comb += [
            judgement.broken.eq(broken),
            judgement.illegal.eq(~Cat(*legal.values()).any()),
            judgement.sync.eq(legal[Sync] & ~broken),
            judgement.end.eq(register(m, is_among(
                unpack(Sync, word).action, SyncAction,
                {SyncAction.BARRIER: False, SyncAction.END: True}), "is_end")),
            *(judgement.engines[engine].eq(~broken & Cat(
                holds for instruction, holds in legal.items()
                if instruction.engine == engine and instruction is not Sync).any())
              for engine in Engine),
        ]
        compared, judged = Signal(), Signal()
        m.d.sync += [compared.eq(complete), judged.eq(compared)]
        m.d.comb += [judgements.valid.eq(judged),
                     judgements.payload.eq(register(m, judgement.as_value(), "entering"))]

    def _keep(self, m, buffer, word, complete, platform):
        """Store words at the place that their decoded form gets later in the buffer. Returns the
        oldest word."""
        m.submodules.words = words = Memory(shape=len(word), depth=AHEAD, init=[],
                                            attrs=small_memory(platform))
        written, read = words.write_port(), words.read_port(domain="comb")
        arriving = Signal(range(AHEAD))
        with m.If(complete):
            m.d.sync += arriving.eq(arriving + 1)
        # Written unconditionally: the place is free, since the oldest word has a register of its
        # own.
        m.d.comb += [written.addr.eq(arriving), written.data.eq(word), written.en.eq(1),
                     read.addr.eq(buffer.place)]
        oldest = Signal(len(word), reset_less=True)
        with m.If(buffer.renews):
            m.d.sync += oldest.eq(read.data)
        return oldest

    def _dispatch(self, m, buffer, word):
        """Dispatch the oldest instruction to its engine, or execute a sync here."""
        oldest = buffer.take.payload
        queues = [getattr(self, engine.name.lower()) for engine in Engine]
        valid, was_idle = (Signal(name=name) for name in ("valid", "was_idle"))
        over = Signal()                                     # halted or finished
        m.d.comb += [
            valid.eq(buffer.take.valid & ~over),
            # `ready` need not depend on whether there is an instruction.
            buffer.take.ready.eq(~over & Cat(
                oldest.sync & was_idle, (goes & queue.ready for goes, queue
                                         in zip(oldest.engines, queues, strict=True))).any()),
            self.dispatched.eq(buffer.take.valid & buffer.take.ready),
        ]
        for goes, queue in zip(oldest.engines, queues, strict=True):
            m.d.comb += [queue.valid.eq(valid & goes), queue.payload.word.eq(word),
                         queue.payload.position.eq(self.position)]
        m.d.sync += was_idle.eq(self.idle & ~self.dispatched)
        with m.If(self.dispatched):
            m.d.sync += self.position.eq(self.position + 1)
            with m.If(oldest.sync & oldest.end):
                m.d.sync += [self.finished.eq(1), over.eq(1)]
        with m.If(self.halts):
            m.d.sync += over.eq(1)
        self._fault(m, valid, ~oldest.illegal, oldest.broken)

    def _fault(self, m, valid, legal, broken):
        at_end = Signal()                                   # one cycle late
        m.d.sync += at_end.eq(self.position == self.count)
        ran_out = self.running & ~self.finished & at_end
        m.d.comb += self.fault.position.eq(self.position)
        with m.If(valid & broken):
            m.d.comb += self.fault.cause.eq(Fault.READ_ERROR)
        with m.Elif(valid & ~legal):
            m.d.comb += self.fault.cause.eq(Fault.ILLEGAL)
        with m.Elif(ran_out):
            m.d.comb += self.fault.cause.eq(Fault.NO_END)
