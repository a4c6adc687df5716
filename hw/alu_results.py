"""What the ALU has in flight: a ticket for each step, the results, and their writes in order."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, Signature

from ..isa.config import Config
from ..isa.instructions import Buffer, Engine
from .accumulator import granted_write_port
from .alu_lanes import LATENCY
from .interfaces import bits_for, index
from .layouts import POSITION_BITS
from .requantizer import LANE_BITS
from .scratchpad import write_port

DEPTH = 16                  # tickets
# At full rate a step holds its ticket for one cycle before it is issued, LATENCY cycles until its
# result is stored, and one more for the write. With fewer tickets the ALU would be slower.
assert DEPTH >= LATENCY + 2

# What is to happen when the result of a step is there.
TICKET = data.StructLayout({
    "to_acc": 1,            # write it to tile `dst` of acc ...
    "to_out": 1,            # ... or of out, or nowhere: an instruction without iterations
    "dst": index(),
    "outside": 1,           # an index of the step is outside its scratchpad: a fault
    "last": 1,              # its instruction is complete
    "post": len(Engine),
    "position": POSITION_BITS,
})

# Between the unit that issues steps and the one that writes their results. Sets of tickets have
# one bit for each.
tickets = Signature({
    "room": In(1),              # a ticket is free
    "enter": Out(1),            # a step takes it; only while there is room
    "ticket": Out(TICKET),
    "reads_left": Out(1),       # the acc tiles that a step is going to read
    "left": Out(index()),
    "reads_right": Out(1),
    "right": Out(index()),
    "before": In(DEPTH),        # tickets whose writes to these tiles are still to come
    "retiring": In(DEPTH),      # the ticket whose step is over with this cycle
})


class AluResults(Component):
    """Keeps results until they can be written, and knows which writes are still to come.

    A step enters with its ticket before its operands are read. Tickets, results and writes all
    come in the same order. A result for acc waits until the accumulator grants it; a result for
    out does not wait. The instruction is complete with the write of its last result, which a read
    in the next cycle finds. A ticket that is `outside` is never retired: the fault stays, and
    nothing behind it happens.

    Rate: a step a cycle enters, finishes and retires. Latency: a result is written in the cycle
    after `finished` at the earliest. There is always room for the result of a step that has
    entered. While `halt`, nothing is written and nothing completes.

    Registers: `entered`, `stored` and `retired` count steps modulo twice DEPTH; `pending` is the
    set of tickets that will write to acc, `targets` their tiles.

    Members
    -------
    tickets : In(tickets)
        Where steps enter, before they are issued. Refuses them while no ticket is free.
    finished : In(1)
        From the lanes: the result of the oldest step that has none yet is there.
    results : In(acc tile)
        From the lanes: that result.
    acc : Out(granted_write_port)
        Writes to the accumulator, each requested until it is granted.
    out : Out(write_port)
        Writes to the result scratchpad, 8 bits a lane. Never refused.
    end : Out(1)
        An instruction is complete in this cycle.
    post : Out(len(Engine))
        The engines that it gives a token to; zero in all other cycles.
    position : Out(32)
        Its number in the program, or that of the faulty one.
    fault : Out(1)
        An instruction has reached outside a scratchpad. Stays until reset.
    halt : In(1)
        Write and complete nothing from this cycle on.
    """

    def __init__(self, config: Config):
        self.config = config
        self.lanes = config.batch * config.block_out
        self.acc_bits = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "tickets": In(tickets),
            "finished": In(1),
            "results": In(self.acc_bits),
            "acc": Out(granted_write_port(self.acc_bits)),
            "out": Out(write_port(8 * config.tile_bytes(Buffer.OUT))),
            "end": Out(1),
            "post": Out(len(Engine)),
            "position": Out(POSITION_BITS),
            "fault": Out(1),
            "halt": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        entered, stored, retired = (Signal(range(2 * DEPTH), name=name)
                                    for name in ("entered", "stored", "retired"))
        oldest = Signal(TICKET)
        result = Signal(self.acc_bits)
        waiting, retire = Signal(), Signal()
        m.submodules.ticket_memory = self._memory(
            m, TICKET.size, (self.tickets.enter, entered, self.tickets.ticket.as_value()),
            (retired, oldest.as_value()))
        m.submodules.result_memory = self._memory(
            m, self.acc_bits, (self.finished, stored, self.results), (retired, result))
        for counter, counts in ((entered, self.tickets.enter), (stored, self.finished),
                                (retired, retire)):
            m.d.sync += counter.eq(counter + counts)

        m.d.comb += [
            self.tickets.room.eq((entered - retired)[:len(entered)] != DEPTH),
            waiting.eq((stored != retired) & ~self.halt),
            self.acc.enable.eq(waiting & oldest.to_acc),
            self.acc.index.eq(oldest.dst),
            self.acc.data.eq(result),
            self.out.enable.eq(waiting & oldest.to_out),
            self.out.index.eq(oldest.dst),
            self.out.data.eq(Cat(result.word_select(lane, LANE_BITS)[:self.config.out_bits]
                                 for lane in range(self.lanes))),
            retire.eq(waiting & ~oldest.outside & (~oldest.to_acc | self.acc.granted)),
            self.end.eq(retire & oldest.last),
            self.post.eq(Mux(self.end, oldest.post, 0)),
            self.position.eq(oldest.position),
            self.fault.eq((stored != retired) & oldest.outside),
        ]
        self._interlock(m, entered, retired, retire)
        return m

    def _memory(self, m, width, write, read):
        """A memory of DEPTH words whose read is immediate: distributed RAM."""
        memory = Memory(shape=width, depth=DEPTH, init=[])
        writes, reads = memory.write_port(), memory.read_port(domain="comb")
        enable, number, value = write
        m.d.comb += [writes.en.eq(enable), writes.addr.eq(number), writes.data.eq(value)]
        number, value = read
        m.d.comb += [reads.addr.eq(number), value.eq(reads.data)]
        return memory

    def _interlock(self, m, entered, retired, retire):
        """The writes to acc that are still to come, and which reads have to wait for them."""
        ports = self.tickets
        bits = bits_for(self.config.tiles(Buffer.ACC))
        pending = Signal(DEPTH)
        slot = len(entered) - 1                 # counters have one bit more than ticket numbers
        one = Const(1, DEPTH)
        m.d.comb += ports.retiring.eq(Mux(retire, one << retired[:slot], 0))
        entering = Mux(ports.enter & ports.ticket.to_acc, (one << entered[:slot])[:DEPTH], 0)
        m.d.sync += pending.eq((pending & ~ports.retiring) | entering)
        for number in range(DEPTH):
            target = Signal(bits, name=f"target_{number}", reset_less=True)
            with m.If(entering[number]):
                m.d.sync += target.eq(ports.ticket.dst)
            reads = ((ports.reads_left & (ports.left[:bits] == target))
                     | (ports.reads_right & (ports.right[:bits] == target)))
            m.d.comb += ports.before[number].eq(reads & pending[number] & ~ports.retiring[number])
