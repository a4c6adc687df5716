"""The ALU's steps in flight: a ticket for each, their results, and the writes in order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, Signature

from ...isa.config import Config
from ...isa.instructions import TABLE_WORDS, TABLES, Buffer, Engine
from ..accumulator import NARROW_BITS, granted_write_port, request
from ..interfaces import bits_for, index
from ..layouts import POSITION_BITS
from ..logic import exponent, select
from ..scratchpad import write_port
from .alu_lanes import latency
from .requantizer import LANE_BITS

DEPTH = 16                  # tickets


def ticket_layout(config: Config) -> data.StructLayout:
    """What to do with the result of a step."""
    return data.StructLayout({
        "to_acc": 1,        # write it to tile `dst` of acc ...
        "to_out": 1,        # ... or of out, or discard it: an instruction without iterations
        **({"to_table": 1,  # ... or one of its lanes to word `dst` of the tables
            "lookup": 1,    # write its table entry to out
            "table": exponent(TABLES)} if config.tables else {}),
        "dst": index(),
        "narrow": 1,        # lanes have 8 bits and are sign-extended
        "outside": 1,       # an index of the step is out of range: a fault, and no write
        "last": 1,          # it completes its instruction
        "post": len(Engine),
        "position": POSITION_BITS,
    })


def tickets(config: Config) -> Signature:
    """Between the unit that issues steps and the one that writes their results. Sets of tickets are
    bit masks."""
    return Signature({
        "room": In(1),          # a ticket is free
        "held": Out(1),         # a step is about to take it ...
        "ticket": Out(ticket_layout(config)),
        "enter": Out(1),        # ... and takes it in this cycle; only while there is room
        "next_held": Out(1),    # there is a step behind it that will write ...
        "next_dst": Out(index()),
        "moves": Out(1),        # ... or none, or it moves up: in the next cycle, the step behind
        "reads_left": Out(1),   # reads tiles of acc ...
        "reads_right": Out(1),
        "following_left": Out(index()),     # ... these, and otherwise those it reads now
        "following_right": Out(index()),
        "before": In(DEPTH),    # tickets with pending writes to its tiles
        "must_wait": In(1),     # there is such a ticket
        "pending": In(DEPTH),   # all tickets with pending writes to acc
    })


class AluResults(Component):
    """Buffers results until they can be written, and tracks pending writes.

    A step enters with its ticket when it is issued. Tickets, results and writes stay in order. The
    oldest result is written from a register; a result enters that register directly if none is
    waiting, otherwise through a memory. A result for acc waits there until the accumulator grants
    its write; a result for out does not wait. An instruction completes with the write of its last
    result, which is visible to reads in the next cycle. A ticket that is `outside` never retires:
    the fault stays, and nothing later takes effect.

    Rate: a step a cycle enters, finishes and retires. Latency: a result is written at the earliest
    in the cycle after its last part is `finished`. There is always room for the result of a step
    that has entered. From the cycle after `halts`, nothing is written and nothing completes.

    Registers: `entered`, `stored` and `loaded` count steps modulo DEPTH, `kept` counts the results
    in the memory, `some` is high if there are any, and `under_way` counts the steps that have
    entered and not retired; `oldest` and `result` are written next; `pending` is the set of tickets
    that will write to acc, `targets` their tiles, `left_is` and `right_is` those that the step
    behind reads; `entering` and `retiring` are the next tickets, one-hot.

    Members
    -------
    tickets : In(tickets)
        Steps enter here when they are issued, and before that ask what they have to wait for. None
        may enter while no ticket is free.
    finished : In(vector_cycles)
        From the lanes, bit k: part k of the oldest outstanding result is valid.
    results : In(alu_lanes × 32 bits)
        From the lanes: that part.
    acc : Out(granted_write_port)
        Writes to the accumulator, each requested until it is granted.
    out : Out(write_port)
        Writes to the result scratchpad, 8 bits a lane. Always accepted.
    lookup : Out(1)
        With a write to `out`: write table entries instead. Only if there are tables.
    table : Out(range(TABLES))
        The number of that table. Only if there are tables.
    fills : Out(1)
        Write `word` to the tables, at word `out.index`. Only if there are tables.
    word : Out(32)
        Lane `out.index` of the result, modulo the number of lanes. Only if there are tables.
    end : Out(1)
        An instruction is complete in this cycle.
    post : Out(len(Engine))
        The engines to post a token to; zero in all other cycles.
    position : Out(32)
        Its number in the program, or that of the faulty one.
    fault : Out(1)
        An index is out of range. Stays high until a halt.
    halts : In(1)
        Write and complete nothing from the next cycle on.
    """

    def __init__(self, config: Config):
        self.config = config
        self.lanes = config.batch * config.block_out
        self.acc_bits = 8 * config.tile_bytes(Buffer.ACC)
        # At full rate, a step that is issued finds under way all those whose result has not been
        # written in the cycle after its last part arrived.
        assert DEPTH * config.vector_cycles >= latency(config) + 2
        super().__init__({
            "tickets": In(tickets(config)),
            "finished": In(config.vector_cycles),
            "results": In(config.alu_lanes * LANE_BITS),
            "acc": Out(granted_write_port(config)),
            "out": Out(write_port(8 * config.tile_bytes(Buffer.OUT))),
            **({"lookup": Out(1), "table": Out(range(TABLES)), "fills": Out(1),
                "word": Out(LANE_BITS)} if config.tables else {}),
            "end": Out(1),
            "post": Out(len(Engine)),
            "position": Out(POSITION_BITS),
            "fault": Out(1),
            "halts": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        entered, stored, loaded = (Signal(range(DEPTH), name=name)
                                   for name in ("entered", "stored", "loaded"))
        ticket = ticket_layout(self.config)
        oldest = Signal(ticket, reset_less=True)
        result = Signal(self.acc_bits, reset_less=True)
        waiting, retire, renew = Signal(), Signal(), Signal()
        vacant = Signal(init=1)             # ~waiting, for fan-out
        asks, of_bank = Signal(), Signal(self.config.acc_banks)     # it requests a write to acc
        spares = Signal(self.config.acc_banks, init=2**self.config.acc_banks - 1)   # the inverse
        free, bound = Signal(), Signal(init=1)      # it needs no grant, and the inverse
        posts = Signal(len(Engine), reset_less=True)        # `oldest.post`, if it is the last
        arrives, some = self.finished[-1], Signal()
        self.crowded = Signal()             # no ticket is free; for the memory of tickets
        halted = Signal()                   # no result is written any more
        m.submodules.ticket_memory, next_ticket = self._memory(
            m, ticket, (~self.crowded, entered, self.tickets.ticket), loaded)
        next_result = []
        for number, finished in enumerate(self.finished):       # a memory for each part
            m.submodules[f"result_memory_{number}"], part = self._memory(
                m, len(self.results), (finished, stored, self.results), loaded)
            next_result.append(part)
        next_result[-1] = Mux(some, next_result[-1], self.results)
        loads = renew & (some | arrives)
        for counter, counts in ((entered, self.tickets.enter), (stored, arrives), (loaded, loads)):
            with m.If(counts):
                m.d.sync += counter.eq(counter + 1)
        kept = Signal(range(DEPTH + 1))
        with m.If(arrives & ~loads):
            m.d.sync += [kept.eq(kept + 1), some.eq(1)]
        with m.Elif(loads & ~arrives):
            m.d.sync += [kept.eq(kept - 1), some.eq(kept != 1)]

        comes = some | arrives
        m.d.comb += renew.eq(~waiting | retire)
        wants = comes & next_ticket.to_acc
        wanted = request(self.config, wants, next_ticket.dst)
        is_free = comes & ~next_ticket.to_acc & ~next_ticket.outside
        with m.If(renew):
            m.d.sync += [oldest.eq(next_ticket), waiting.eq(comes), vacant.eq(~comes),
                         of_bank.eq(wanted), spares.eq(~wanted), asks.eq(wants),
                         posts.eq(next_ticket.post & next_ticket.last.replicate(len(posts))),
                         free.eq(is_free), bound.eq(~is_free),
                         result.eq(_sign_extend(Cat(next_result), next_ticket.narrow))]
        stops = self.halts | halted
        with m.If(stops):
            m.d.sync += [halted.eq(1), waiting.eq(0), vacant.eq(1), free.eq(0), bound.eq(1),
                         of_bank.eq(0), spares.eq(~0), asks.eq(0)]
        m.d.comb += [
            self.acc.enable.eq(of_bank), self.acc.spares.eq(spares),
            self.acc.moves.eq(vacant | retire), self.acc.following.eq(next_ticket.dst),
            self.acc.follows.eq(wants & ~stops),
            self.acc.stays.eq(asks & ~stops),
            self.acc.index.eq(oldest.dst),
            self.acc.data.eq(result),
            self.out.enable.eq(waiting & oldest.to_out),
            self.out.index.eq(oldest.dst),
            self.out.data.eq(Cat(result.word_select(lane, LANE_BITS)[:self.config.out_bits]
                                 for lane in range(self.lanes))),
            retire.eq(free | self.acc.granted),
            self.end.eq(retire & oldest.last),
            self.post.eq(Mux(bound & self.acc.refused, 0, posts)),      # if it retires
            self.position.eq(oldest.position),
            self.fault.eq(waiting & oldest.outside),
        ]
        if self.config.tables:
            self._use_tables(m, waiting, oldest, result)
        self._count(m, retire)
        self._interlock(m, retire)
        return m

    def _use_tables(self, m, waiting, oldest, result):
        """Drive the table ports for the oldest result."""
        lanes = min(self.lanes, TABLE_WORDS)
        m.d.comb += [
            self.lookup.eq(oldest.lookup), self.table.eq(oldest.table),
            self.fills.eq(waiting & oldest.to_table),
            self.word.eq(select([result.word_select(lane, LANE_BITS) for lane in range(lanes)],
                                oldest.dst)),
        ]

    def _memory(self, m, shape, write, place):
        """A memory of DEPTH words with an asynchronous read: distributed RAM."""
        memory = Memory(shape=shape, depth=DEPTH, init=[])
        writes, reads = memory.write_port(), memory.read_port(domain="comb")
        enable, number, value = write
        m.d.comb += [writes.en.eq(enable), writes.addr.eq(number), writes.data.eq(value),
                     reads.addr.eq(place)]
        return memory, reads.data

    def _count(self, m, retire):
        """Count the steps under way; a register tells whether a ticket is free."""
        enter, room = self.tickets.enter, Signal(init=1)
        under_way = Signal(range(DEPTH + 1))
        m.d.comb += self.tickets.room.eq(room)
        with m.If(enter & ~retire):
            m.d.sync += [under_way.eq(under_way + 1), room.eq(under_way != DEPTH - 1),
                         self.crowded.eq(under_way == DEPTH - 1)]
        with m.Elif(retire & ~enter):
            m.d.sync += [under_way.eq(under_way - 1), room.eq(1), self.crowded.eq(0)]

    def _interlock(self, m, retire):
        """The pending writes to acc, and the reads that have to wait for them."""
        ports = self.tickets
        bits = bits_for(self.config.tiles(Buffer.ACC))
        pending = Signal(DEPTH)
        entering, retiring = (Signal(DEPTH, init=1, name=name) for name in ("entering", "retiring"))
        with m.If(ports.enter):
            m.d.sync += entering.eq(entering.rotate_left(1))
        with m.If(retire):
            m.d.sync += retiring.eq(retiring.rotate_left(1))
        m.d.sync += pending.eq((pending & ~Mux(retire, retiring, 0))
                               | Mux(ports.enter & ports.ticket.to_acc, entering, 0))

        # Reads are compared while their step arrives, against the targets of the next cycle. The
        # target of the step about to enter is included already.
        entered, will_enter = ports.ticket.dst[:bits], ports.next_dst[:bits]
        reads = {"left": ports.reads_left, "right": ports.reads_right}
        following = {"left": ports.following_left[:bits], "right": ports.following_right[:bits]}
        is_held = {side: Signal(name=f"{side}_is_held", reset_less=True) for side in reads}
        with m.If(ports.moves):
            m.d.sync += [is_held[side].eq(
                reads[side] & Mux(ports.next_held, tile == will_enter, tile == entered))
                for side, tile in following.items()]
        meets_held = ports.held & ports.ticket.to_acc & Cat(*is_held.values()).any()
        meets = []
        for number in range(DEPTH):
            target = Signal(bits, name=f"target_{number}", reset_less=True)
            with m.If(entering[number]):            # it is not looked at before it is pending
                m.d.sync += target.eq(entered)
            is_target = {side: Signal(name=f"{side}_is_{number}", reset_less=True)
                         for side in reads}
            with m.If(ports.moves):
                m.d.sync += [is_target[side].eq(
                    reads[side] & Mux(entering[number], tile == entered, tile == target))
                    for side, tile in following.items()]
            meets.append(pending[number] & Cat(*is_target.values()).any())
            m.d.comb += ports.before[number].eq(meets[number] | (meets_held & entering[number]))
        m.d.comb += [ports.pending.eq(pending), ports.must_wait.eq(Cat(meets_held, *meets).any())]


def _sign_extend(result, narrow):
    """The lanes of a result, sign-extended if they are narrow."""
    lanes = [result.word_select(number, LANE_BITS) for number in range(len(result) // LANE_BITS)]
    return Cat(Cat(lane[:NARROW_BITS], Mux(narrow, lane[NARROW_BITS - 1].replicate(
        LANE_BITS - NARROW_BITS), lane[NARROW_BITS:])) for lane in lanes)
