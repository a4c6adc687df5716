"""Issues the ALU's steps: checks their indices, waits for what they read, reads it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.instructions import PARAMETER_TILES, Buffer
from .alu_decode import TASK, operands
from .alu_lanes import WORK
from .alu_results import DEPTH, tickets
from .interfaces import bits_for, granted_read_port, index
from .sequencer import slot_layout

# A step that is ready to read: its indices are inside.
STEP = data.StructLayout({
    "reads_left": 1,
    "left": index(),
    "reads_right": 1,
    "right": index(),
    "fetches": PARAMETER_TILES,     # which parameter the right operand is; none for a vector
    "before": DEPTH,                # tickets whose writes the reads wait for
    "work": WORK,
})


class AluIssue(Component):
    """Takes slots of the sequencer and hands vectors to the lanes.

    A slot becomes a step. Three more steps precede the first one of each outer iteration of a
    requantize and fetch its parameters: bias, multiplier, shift. A step enters a buffer of two,
    takes a ticket unless it fetches, and is issued when both its reads have been granted. Both
    reads are requested at once, each until it is granted; the data of the one that was granted
    first stay in its port. The step in front waits, and all behind it,

        waits_for_write     while an earlier step has yet to write a tile that it reads
        waits_for_bank      until the accumulator has granted its reads

    and a slot is taken only while `free`: the buffer has room and a ticket is left. A slot with an
    index outside its scratchpad reads and writes nothing: its ticket carries the fault, and
    `stopped` lets no slot follow.

    Rate: a step a cycle. Latency: a slot that is taken in one cycle can be issued in the next.

    Registers: `front` and `back`, the buffer; `left_read` and `right_read`, reads granted to the
    front step; `parameter`, the number of the next to fetch; `stopped`.

    Members
    -------
    slots : In(stream of slot_layout)
        The iterations of instructions, from a sequencer of `alu_decode.operands` whose tag is a
        TASK. Not taken while parameters are being fetched or the buffer is full.
    tickets : Out(tickets)
        Books the result of each step, and asks which earlier results it has to wait for.
    left, right : Out(granted_read_port)
        Reads from the accumulator, each requested until it is granted.
    issued : Out(1)
        To the lanes: a step has been granted what it reads.
    work : Out(WORK)
        To the lanes: what that step computes.
    fetched : Out(PARAMETER_TILES)
        To the lanes: the read of this parameter has been granted.
    stopped : Out(1)
        A step was outside its scratchpad: nothing more is taken until reset.
    """

    def __init__(self, config: Config):
        self.config = config
        tile = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "slots": In(stream.Signature(slot_layout(operands(config), TASK))),
            "tickets": Out(tickets),
            "left": Out(granted_read_port(tile)),
            "right": Out(granted_read_port(tile)),
            "issued": Out(1),
            "work": Out(WORK),
            "fetched": Out(PARAMETER_TILES),
            "stopped": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        step, entering = Signal(STEP), Signal()
        front, back = Signal(STEP, reset_less=True), Signal(STEP, reset_less=True)
        front_valid, back_valid, taken = Signal(), Signal(), Signal()
        free = Signal()
        m.d.comb += [
            free.eq(~back_valid & self.tickets.room & ~self.stopped),
            entering.eq(self.slots.valid & free),
        ]
        self._make_step(m, step, entering, free)
        self._buffer(m, step, entering, taken, (front, front_valid), (back, back_valid))
        self._read(m, front, front_valid, taken)
        return m

    def _make_step(self, m, step, entering, free):
        """The step that the slot stands for, or the next parameter it needs first."""
        slot, task = self.slots.payload, self.slots.payload.tag
        parameter = Signal(range(PARAMETER_TILES + 1))      # fetched so far, for this slot
        fetches, outside = Signal(), Signal()
        begins = slot.first.middle & slot.first.inner & ~slot.empty
        m.d.comb += [
            fetches.eq(task.work.control.requantize & begins & (parameter != PARAMETER_TILES)),
            self.slots.ready.eq(free & ~fetches),
        ]
        with m.If(entering):
            m.d.sync += parameter.eq(Mux(fetches, parameter + 1, 0))
            m.d.sync += self.stopped.eq(outside)

        dst = task.bases.dst + slot.offsets.dst
        left = task.bases.left + slot.offsets.left
        right = task.bases.right + slot.offsets.right + parameter
        writes = ~slot.empty & ~fetches
        reads_left = task.reads_left & writes
        reads_right = (task.reads_right & writes) | fetches
        acc_tiles, out_tiles = (self.config.tiles(each) for each in (Buffer.ACC, Buffer.OUT))
        dst_outside = Mux(task.to_out, _outside(dst, out_tiles), _outside(dst, acc_tiles))
        m.d.comb += [
            outside.eq((reads_left & _outside(left, acc_tiles))
                       | (reads_right & _outside(right, acc_tiles)) | (writes & dst_outside)),
            step.reads_left.eq(reads_left & ~outside), step.left.eq(left),
            step.reads_right.eq(reads_right & ~outside), step.right.eq(right),
            step.fetches.eq(Mux(fetches & ~outside, Const(1, PARAMETER_TILES) << parameter, 0)),
            step.before.eq(self.tickets.before),
            step.work.eq(task.work),
        ]
        self._enter(m, step, entering & (~fetches | outside))
        m.d.comb += [
            self.tickets.ticket.to_acc.eq(writes & ~task.to_out & ~outside),
            self.tickets.ticket.to_out.eq(writes & task.to_out & ~outside),
            self.tickets.ticket.dst.eq(dst),
            self.tickets.ticket.outside.eq(outside),
            self.tickets.ticket.last.eq(slot.last),
        ]

    def _enter(self, m, step, enter):
        """Take a ticket, and ask which of those before have to be waited for."""
        ports, task = self.tickets, self.slots.payload.tag
        m.d.comb += [
            ports.enter.eq(enter),
            ports.ticket.post.eq(task.post), ports.ticket.position.eq(task.position),
            ports.reads_left.eq(step.reads_left), ports.left.eq(step.left),
            ports.reads_right.eq(step.reads_right), ports.right.eq(step.right),
        ]

    def _buffer(self, m, step, entering, taken, front, back):
        """Two steps, so that whether a slot is taken does not depend on grants of this cycle."""
        (front, front_valid), (back, back_valid) = front, back
        still_before = ~self.tickets.retiring
        m.d.sync += [front.before.eq(front.before & still_before),
                     back.before.eq(back.before & still_before)]
        with m.If(taken | ~front_valid):
            m.d.sync += [front_valid.eq(back_valid | entering), back_valid.eq(0)]
            with m.If(back_valid):
                m.d.sync += [front.eq(back), front.before.eq(back.before & still_before)]
            with m.Else():
                m.d.sync += front.eq(step)
        with m.Elif(entering):
            m.d.sync += [back.eq(step), back_valid.eq(1)]

    def _read(self, m, front, front_valid, taken):
        """Request what the front step reads, and issue it when all has been granted."""
        waits_for_write, waits_for_bank = Signal(), Signal()
        m.d.comb += waits_for_write.eq(front.before.any())
        missing = []
        for port, name in ((self.left, "left"), (self.right, "right")):
            read = Signal(name=f"{name}_read")
            reads = front[f"reads_{name}"]
            m.d.comb += [port.enable.eq(front_valid & ~waits_for_write & reads & ~read),
                         port.index.eq(front[name])]
            granted = port.enable & port.granted
            m.d.sync += read.eq((read | granted) & ~taken)
            missing.append(reads & ~read & ~granted)
        m.d.comb += [
            waits_for_bank.eq(Cat(missing).any()),
            taken.eq(front_valid & ~waits_for_write & ~waits_for_bank),
            self.issued.eq(taken & ~front.fetches.any()),
            self.fetched.eq(Mux(taken, front.fetches, 0)),
            self.work.eq(front.work),
        ]


def _outside(number, tiles):
    """Whether an exact index is negative or too large; the number of tiles is a power of two."""
    return number[bits_for(tiles):].any()
