"""Issues the ALU's steps: checks indices, resolves hazards, reads operands."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ..accumulator import operand_port, request
from ..interfaces import bits_for, index
from ..sequencer import slot_layout
from .alu_decode import operands, task_layout
from .alu_lanes import WORK
from .alu_results import DEPTH, ticket_layout, tickets


def step_layout(config: Config) -> data.StructLayout:
    """A step. One that fetches a parameter has no result. One with an index out of range has its
    reads and writes masked before it reaches the front; its ticket carries the fault."""
    return data.StructLayout({
        "reads_left": 1,
        "left": index(),
        "reads_right": 1,
        "right": index(),
        "fetches": PARAMETER_TILES,     # which parameter the right operand is; none for a vector
        "work": WORK,
        "ticket": ticket_layout(config),
    })


class AluIssue(Component):
    """Takes slots from the sequencer and issues vectors to the lanes.

        slots ─► described, spare ─► front ─► lanes
                     │ before         │ ticket
                     └──── AluResults ┘

    A slot becomes a step. Three more steps precede the first one of each outer iteration of a
    requantize and fetch its parameters: bias, multiplier, shift. The next step is held in
    `described`, and another one in `spare` while `described` cannot advance, so that `slots.ready`
    comes from a register. On its way to the front a step is compared with the pending writes to the
    tiles that it reads. At the front it waits

        ~clear              until those writes are done
        pause               until the lanes have taken all parts of the previous vector
        waits_for_bank      until the accumulator grants its reads
        ~room               until a ticket is free

    and is then issued. Both reads are requested at once, each until it is granted; the port that
    was granted first holds its data. A slot with an index out of range reads and writes nothing:
    its ticket carries the fault, and `stopped` blocks all later slots.

    Rate: a vector every `vector_cycles` cycles, a fetch every cycle. Latency: a slot can be issued
    two cycles after it was taken. A step that reads what another writes can be issued in the second
    cycle after the write.

    Registers: `described`, `spare` and `front`, each with a valid bit; `vacant`: the front is
    empty; `full`: front and described are both in use, and `gap`, its inverse; `free`: a slot may
    be taken; `before`: the tickets that the front step waits for; `clear`: it need not wait for
    them nor for the lanes; `pause`: how many cycles it still has to; `left_asks` and `right_asks`:
    its reads that are not granted yet, and `…_of_bank`, the same by bank; `parameter`: the next one
    to fetch, `following`, its tile unless it is the first, and `complete`; `stopped`. `shut`,
    `incomplete`, `later`, `no_spare` and `gap` are inverted copies that keep fan-out low.

    Members
    -------
    slots : In(stream of slot_layout)
        Iterations of instructions, from a sequencer over `alu_decode.operands` whose tag is a task.
        Not taken while parameters are being fetched, or while `described` and `spare` are both in
        use.
    tickets : Out(tickets)
        Allocates a ticket for each step that is issued, and asks which earlier results the next
        step has to wait for.
    left, right : Out(operand_port)
        Reads from the accumulator, each requested until it is granted.
    issued : Out(1)
        To the lanes: the reads of a step have been granted.
    work : Out(WORK)
        To the lanes: the operation of that step.
    takes : Out(1)
        Copy of `slots.ready`, from the registers `shut` and `incomplete`.
    continues : In(1)
        The slot does not begin an outer iteration; from its own register.
    fetched : Out(PARAMETER_TILES)
        To the lanes: the read of this parameter has been granted.
    stops : Out(1)
        A step has an index out of range: nothing more is taken until reset.
    """

    def __init__(self, config: Config):
        self.config, self.step = config, step_layout(config)
        super().__init__({
            "slots": In(stream.Signature(slot_layout(
                operands(config), task_layout(config), steps=False))),
            "takes": Out(1), "continues": In(1, init=1),
            "tickets": Out(tickets(config)),
            "left": Out(operand_port(config)),
            "right": Out(operand_port(config)),
            "issued": Out(1),
            "work": Out(WORK),
            "fetched": Out(PARAMETER_TILES),
            "stops": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        step, entering, taken = Signal(self.step), Signal(), Signal()
        self.renew = Signal()           # the front takes the next step, if there is one
        # `spare` is free and nothing has stopped; the inverse has its own register, for fan-out.
        free, self.shut = Signal(init=1), Signal()
        m.d.comb += entering.eq(self.slots.valid & free)
        self._make_step(m, step, entering, free)
        described = self._describe(m, step, entering, taken, free)
        self._advance(m, described, taken)
        return m

    def _make_step(self, m, step, entering, free):
        """The step of the slot, or a fetch of the next parameter that it needs first."""
        slot, task = self.slots.payload, self.slots.payload.tag
        parameter = Signal(PARAMETER_TILES, init=1)         # the next to fetch, one-hot
        complete, incomplete = Signal(), Signal(init=1)     # all fetched, for this slot
        following = Signal.like(slot.at.right, name="following", reset_less=True)
        fetches, outside = Signal(), Signal()
        m.d.comb += [
            fetches.eq(slot.begins & ~complete),
            self.slots.ready.eq(free & ~(slot.begins & incomplete)),
            self.takes.eq(~self.shut & (self.continues | ~incomplete)),
            self.stops.eq(entering & outside),
        ]
        later = Signal()                                    # ~parameter[0], for fan-out
        right = Mux(later, following, slot.at.right)
        with m.If(entering):
            m.d.sync += [following.eq(right + 1), complete.eq(fetches & parameter[-1]),
                         incomplete.eq(~(fetches & parameter[-1]))]
        with m.If(entering & fetches):
            m.d.sync += [parameter.eq(parameter.rotate_left(1)), later.eq(~parameter[-1])]

        writes = ~slot.empty & ~fetches
        reads_left = task.reads_left & writes
        reads_right = (task.reads_right & writes) | fetches
        acc_tiles, out_tiles = (self.config.tiles(each) for each in (Buffer.ACC, Buffer.OUT))
        dst_outside = Mux(task.to_out, _is_outside(slot.at.dst, out_tiles),
                          _is_outside(slot.at.dst, acc_tiles))
        right_outside = Mux(parameter[0], _is_outside(slot.at.right, acc_tiles),
                            _is_outside(following, acc_tiles))
        ticket = step.ticket
        has_target, to_acc = writes, writes & ~task.to_out
        if self.config.tables:          # their words are always in range
            has_target, to_acc = writes & ~task.to_table, to_acc & ~task.to_table
            m.d.comb += [ticket.to_table.eq(writes & task.to_table), ticket.lookup.eq(task.lookup),
                         ticket.table.eq(task.table)]
        m.d.comb += [
            outside.eq((reads_left & _is_outside(slot.at.left, acc_tiles))
                       | (reads_right & right_outside) | (has_target & dst_outside)),
            step.reads_left.eq(reads_left), step.left.eq(slot.at.left),
            step.reads_right.eq(reads_right), step.right.eq(right),
            step.fetches.eq(Mux(fetches, parameter, 0)),
            step.work.eq(task.work),
            ticket.to_acc.eq(to_acc), ticket.to_out.eq(writes & task.to_out),
            ticket.narrow.eq(task.work.control.scaling.narrow),
            ticket.dst.eq(slot.at.dst), ticket.outside.eq(outside), ticket.last.eq(slot.last),
            ticket.post.eq(task.post), ticket.position.eq(task.position),
        ]

    def _describe(self, m, step, entering, taken, free):
        """The next step for the front, and a spare one that came while it could not advance."""
        described, spare = (Signal(self.step, reset_less=True, name=name)
                            for name in ("described", "spare"))
        valid, spare_valid = Signal(name="described_valid"), Signal()
        # `described` is free or advances to the front: taken | ~full, with low fan-out taken | gap.
        self.full, gap, will_be_full = Signal(), Signal(init=1), Signal()
        arrives = spare_valid | entering
        m.d.comb += will_be_full.eq(Mux(self.renew, valid & arrives, valid | arrives))
        m.d.sync += [self.full.eq(will_be_full), gap.eq(~will_be_full)]
        ports, no_spare = self.tickets, Signal(init=1)      # ~spare_valid, for the comparators
        m.d.comb += [
            ports.moves.eq(taken | gap),
            ports.reads_left.eq(Mux(no_spare, step.reads_left, spare.reads_left)),
            ports.reads_right.eq(Mux(no_spare, step.reads_right, spare.reads_right)),
            ports.following_left.eq(Mux(no_spare, step.left, spare.left)),
            ports.following_right.eq(Mux(no_spare, step.right, spare.right)),
        ]
        with m.If(taken | ~self.full):
            m.d.sync += described.eq(Mux(spare_valid, spare, step))
        with m.If(~spare_valid):
            m.d.sync += spare.eq(step)
        stopped = Signal()
        with m.If(self.stops):
            m.d.sync += stopped.eq(1)
        with m.If(ports.moves):
            m.d.sync += [valid.eq(arrives), spare_valid.eq(0), no_spare.eq(1),
                         free.eq(~stopped & ~self.stops), self.shut.eq(stopped | self.stops)]
        with m.Elif(entering):
            m.d.sync += [spare_valid.eq(1), no_spare.eq(0), free.eq(0), self.shut.eq(1)]
        return described, valid

    def _mask_outside(self, m, described, valid):
        """The described step, with its reads and writes masked if an index is out of range."""
        inside, step = ~described.ticket.outside, Signal(self.step, name="inside")
        m.d.comb += [
            step.eq(described),
            step.reads_left.eq(described.reads_left & inside),
            step.reads_right.eq(described.reads_right & inside),
            step.fetches.eq(described.fetches & inside.replicate(PARAMETER_TILES)),
            step.ticket.to_acc.eq(described.ticket.to_acc & inside),
            step.ticket.to_out.eq(described.ticket.to_out & inside),
        ]
        if self.config.tables:
            m.d.comb += step.ticket.to_table.eq(described.ticket.to_table & inside)
        return step, valid

    def _advance(self, m, described, taken):
        """Advance a step to the front, and request its reads once the tiles have been written."""
        ports, outside = self.tickets, described[0].ticket.outside
        described, described_valid = self._mask_outside(m, *described)
        front, before = Signal(self.step, reset_less=True), Signal(DEPTH, reset_less=True)
        valid, vacant, clear = Signal(name="front_valid"), Signal(init=1), Signal()
        renew = self.renew
        still_clear, next_clear = Signal(), Signal()
        may_follow = self._pause(m)
        m.d.comb += [
            renew.eq(~valid | taken),
            ports.next_held.eq(described_valid), ports.next_dst.eq(described.ticket.dst),
            ports.ticket.eq(front.ticket), ports.held.eq(valid), ports.enter.eq(self.issued),
            still_clear.eq((front.ticket.outside | ~(before & ports.pending).any()) & may_follow),
            next_clear.eq(described_valid & (outside | ~ports.must_wait) & may_follow),
        ]
        with m.If(taken | vacant):                  # a copy of `renew`, for fan-out
            m.d.sync += [front.eq(described), before.eq(ports.before)]
        with m.If(renew):
            m.d.sync += [valid.eq(described_valid), vacant.eq(~described_valid),
                         clear.eq(next_clear)]
        with m.Else():
            m.d.sync += clear.eq(still_clear)
        self._issue(m, front, clear, taken)
        for port, name in ((self.left, "left"), (self.right, "right")):
            asks = Signal(name=f"{name}_asks")
            of_bank = Signal(self.config.acc_banks, name=f"{name}_of_bank")
            spares = Signal(self.config.acc_banks, name=f"{name}_spares",
                            init=2**self.config.acc_banks - 1)
            m.d.comb += [port.asks.eq(asks), port.enable.eq(of_bank), port.spares.eq(spares),
                         port.index.eq(front[name]), port.following.eq(described[name]),
                         port.moves.eq(renew)]
            first = described[f"reads_{name}"] & next_clear
            again = front[f"reads_{name}"] & still_clear
            with m.If(renew):
                wanted = request(self.config, first, described[name])
                m.d.sync += [asks.eq(first), of_bank.eq(wanted), spares.eq(~wanted)]
            with m.Elif(~clear):
                wanted = request(self.config, again, front[name])
                m.d.sync += [asks.eq(again), of_bank.eq(wanted), spares.eq(~wanted)]
            with m.Elif(port.granted):
                m.d.sync += [asks.eq(0), of_bank.eq(0), spares.eq(~0)]

    def _pause(self, m):
        """Returns whether the lanes can accept the reads of another step in the next cycle: its
        data replace those of the previous vector."""
        cycles = self.config.vector_cycles
        if cycles == 1:
            return Const(1, 1)
        pause = Signal(range(cycles))
        with m.If(self.issued):
            m.d.sync += pause.eq(cycles - 1)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        return ~self.issued & (pause <= 1)

    def _issue(self, m, front, clear, taken):
        """Issue the front step when all its requests are granted."""
        waits_for_bank = Signal()
        m.d.comb += [
            waits_for_bank.eq((self.left.asks & ~self.left.granted)
                              | (self.right.asks & ~self.right.granted)),
            taken.eq(clear & self.tickets.room & ~waits_for_bank),
            self.issued.eq(taken & ~front.fetches.any()),
            self.fetched.eq(Mux(taken, front.fetches, 0)),
            self.work.eq(front.work),
        ]


def _is_outside(number, tiles):
    """Whether an exact index is out of range; the number of tiles is a power of two."""
    return number[bits_for(tiles):].any()
