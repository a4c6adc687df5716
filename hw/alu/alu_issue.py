"""Issues the ALU's steps: checks their indices, waits for what they read, reads it."""

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
    """A step. One that fetches a parameter has no result. One that is outside, as its ticket then
    says, has lost all that it wanted to do when it comes to the front."""
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
    """Takes slots of the sequencer and hands vectors to the lanes.

        slots ─► described, spare ─► front ─► lanes
                     │ before         │ ticket
                     └──── AluResults ┘

    A slot becomes a step. Three more steps precede the first one of each outer iteration of a
    requantize and fetch its parameters: bias, multiplier, shift. A step is described by one
    register, or by a spare one while the other cannot move on; so whether a slot is taken does
    not depend on what happens in the same cycle. On its way to the front it learns which earlier
    steps have yet to write a tile that it reads. In front it waits

        ~clear              until the writes of those have been made
        pause               until the lanes have taken all parts of the vector before
        waits_for_bank      until the accumulator has granted its reads
        ~room               until a ticket is free for it

    and is then issued. Both reads are requested at once, each until it is granted; the data of the
    one that was granted first stay in its port. A slot with an index outside its scratchpad reads
    and writes nothing: its ticket carries the fault, and `stopped` lets no slot follow.

    Rate: a vector every `vector_cycles` cycles, a fetch every cycle. Latency: a slot that is taken
    in one cycle can be issued in the second
    one after it. A step that reads what another writes can be issued in the second cycle after
    the write.

    Registers: `described`, `spare` and `front`, each with whether it holds a step, `vacant` and
    `full`, whether the front does not and whether front and described do, and `gap`, whether
    these do not; `free`, whether a slot
    may be taken; `before`, the tickets that the front step has to wait for, and
    `clear`, that it need not wait for them nor for the lanes; `pause`, for how many cycles more it
    has to; `left_asks` and `right_asks`, reads not yet granted to it, and `…_of_bank`, by banks;
    `parameter`, the next one
    to fetch, `following`, its tile unless it is the first, and `complete`; `stopped`. `shut`,
    `incomplete`, `later`, `no_spare` and `gap` are others inverted, for few readers.

    Members
    -------
    slots : In(stream of slot_layout)
        The iterations of instructions, from a sequencer of `alu_decode.operands` whose tag is a
        task. Not taken while parameters are being fetched or both descriptions are in use.
    tickets : Out(tickets)
        Books the result of each step that is issued, and asks which earlier results the next one
        has to wait for.
    left, right : Out(operand_port)
        Reads from the accumulator, each requested until it is granted.
    issued : Out(1)
        To the lanes: a step has been granted what it reads.
    work : Out(WORK)
        To the lanes: what that step computes.
    takes : Out(1)
        The same as `slots.ready`, from registers of its own, `shut` and `incomplete`.
    continues : In(1)
        The slot does not begin an outer iteration, from a register of its own.
    fetched : Out(PARAMETER_TILES)
        To the lanes: the read of this parameter has been granted.
    stops : Out(1)
        A step is outside its scratchpad: from now on, nothing more is taken until reset.
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
        self.renew = Signal()           # the front takes another step, if there is one
        # Spare is, and nothing has stopped; the opposite is a register as well, for few readers.
        free, self.shut = Signal(init=1), Signal()
        m.d.comb += entering.eq(self.slots.valid & free)
        self._make_step(m, step, entering, free)
        described = self._describe(m, step, entering, taken, free)
        self._advance(m, described, taken)
        return m

    def _make_step(self, m, step, entering, free):
        """The step that the slot stands for, or the next parameter it needs first."""
        slot, task = self.slots.payload, self.slots.payload.tag
        parameter = Signal(PARAMETER_TILES, init=1)         # the next to fetch, one bit for each
        complete, incomplete = Signal(), Signal(init=1)     # all have been, for this slot
        following = Signal.like(slot.at.right, name="following", reset_less=True)
        fetches, outside = Signal(), Signal()
        m.d.comb += [
            fetches.eq(slot.begins & ~complete),
            self.slots.ready.eq(free & ~(slot.begins & incomplete)),
            self.takes.eq(~self.shut & (self.continues | ~incomplete)),
            self.stops.eq(entering & outside),
        ]
        later = Signal()                                    # ~parameter[0], for few readers
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
        if self.config.tables:          # whose words are all inside
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
        """The next step for the front, and another one that came while it could not move."""
        described, spare = (Signal(self.step, reset_less=True, name=name)
                            for name in ("described", "spare"))
        valid, spare_valid = Signal(name="described_valid"), Signal()
        # The description is free, or moves to the front: taken | ~full, and for few, taken | gap.
        self.full, gap, will_be_full = Signal(), Signal(init=1), Signal()
        arrives = spare_valid | entering
        m.d.comb += will_be_full.eq(Mux(self.renew, valid & arrives, valid | arrives))
        m.d.sync += [self.full.eq(will_be_full), gap.eq(~will_be_full)]
        ports, no_spare = self.tickets, Signal(init=1)      # ~spare_valid, for those that compare
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
        """The step that is described, or one that does nothing if it is outside."""
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
        """Move a step to the front, and request what it reads once that has been written."""
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
        with m.If(taken | vacant):                  # that is `renew`, for many
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
        """Returns whether, in the next cycle, the lanes can do with another step being read: its
        data replace what they have of the vector before."""
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
        """Issue the front step when everything that it asks for is granted."""
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
    """Whether an exact index is negative or too large; the number of tiles is a power of two."""
    return number[bits_for(tiles):].any()
