"""From the accelerator's AXI4 bus to LiteDRAM: one port of its crossbar for reads, one for writes.

        AR ──▶ commands of words ──▶ ┌──────────┐        AW ──▶ commands of words ──▶ ┌──────────┐
         R ◀── gear ◀── queue ◀───── │ LiteDRAM │         W ──▶ gear ──▶ queue ─────▶ │ LiteDRAM │
                                     └──────────┘         B ◀── after the last command └──────────┘

A beat of the bus is one word of the memory controller, several, or a part of one. LiteX has
adapters for all of this, but none that answers with an error what lies outside of memory, or that
can be stopped. Two ports, since LiteDRAM lets a port wait when it changes banks, as it would with
every change between reading and writing.

Commands to one bank keep their order, whatever port they come from. A write is therefore answered
when its last command has been taken: who reads then, reads what was written.
"""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out, Signature
from amaranth.utils import exact_log2

from ...hw.axi import ID_BITS, flat_ports, read_channels, write_channels
from ...hw.interfaces import BURST_BEATS_BITS
from ...isa.config import Config

OKAY, DECERR = 0, 3
BURSTS = 16         # that may wait for their data, or for their answer to be taken
WORDS = 32          # of the controller that may be under way: more than its latency in cycles


@dataclass(frozen=True)
class Port:
    """What LiteDRAM's crossbar offers, and the addresses that it has on the bus."""

    word_bits: int          # of the controller: what it moves in a cycle
    address_bits: int       # of the number of a word
    base: int               # of memory on the bus
    size: int               # bytes, a power of two that divides the base

    @property
    def word_bytes(self) -> int:
        return self.word_bits // 8


def read_port(port: Port) -> Signature:
    """LiteDRAM's native port for reads. Data come in the order of commands, and cannot wait."""
    return Signature({
        "valid": Out(1), "ready": In(1), "address": Out(port.address_bits),
        "data_valid": In(1), "data": In(port.word_bits),
    })


def write_port(port: Port) -> Signature:
    """LiteDRAM's native port for writes. It takes data some cycles after a command: they must be
    there in the cycle after the command was taken."""
    return Signature({
        "valid": Out(1), "ready": In(1), "address": Out(port.address_bits),
        "data_valid": Out(1), "data_ready": In(1), "data": Out(port.word_bits),
        "strobes": Out(port.word_bytes),
    })


class Gear:
    """How beats of the bus and words of the controller fit together."""

    def __init__(self, config: Config, port: Port):
        wide, narrow = max(config.bus_bits, port.word_bits), min(config.bus_bits, port.word_bits)
        self.ratio = wide // narrow
        self.words_per_beat = max(1, config.bus_bits // port.word_bits)
        self.beats_per_word = max(1, port.word_bits // config.bus_bits)
        self.lane_bits = exact_log2(self.ratio)
        self.word_shift = exact_log2(port.word_bytes)
        self.beat_shift = exact_log2(config.bus_bytes)
        self.port = port

    def outside(self, address):
        """Whether a burst does not lie in memory; none crosses 4 KiB."""
        shift = exact_log2(self.port.size)
        return address[shift:] != self.port.base >> shift

    def first_word(self, address):
        return address[self.word_shift:exact_log2(self.port.size)]

    def first_lane(self, address):
        """The beat of the word in which a burst begins."""
        if self.beats_per_word == 1:
            return Const(0, 1)
        return address[self.beat_shift:self.word_shift]


class DramReader(Component):
    """Answers bursts of reads, in their order whatever their ids.

    Rate: a word of the controller a cycle, or a beat a cycle where words are wider. A burst is
    taken while no other one has commands to give. Words wait in a queue until the bus takes them;
    there are no more commands than have room in it. A burst outside of memory gives no command;
    its beats have no data, and say so.

    Members
    -------
    bus : In(read_channels)
        The read half of an AXI4 slave, for incrementing bursts of whole beats.
    port : Out(read_port)
        To the controller.
    stop : In(1)
        Give no command any more.
    quiet : Out(1)
        The controller owes no data.
    """

    def __init__(self, config: Config, port: Port):
        self.config, self.gear, self.words = config, Gear(config, port), port
        super().__init__({"bus": In(read_channels(config)), "port": Out(read_port(port)),
                          "stop": In(1), "quiet": Out(1)})

    def elaborate(self, platform):
        m = Module()
        self.owed = Signal(range(WORDS + 1))        # words under way or in the queue
        self.under_way = Signal(range(WORDS + 1))
        m.submodules.words = self.queue = SyncFIFOBuffered(width=self.words.word_bits, depth=WORDS)
        self.burst = data.StructLayout({
            "id": ID_BITS, "beats": BURST_BEATS_BITS, "outside": 1,
            "lane": max(1, self.gear.lane_bits)})
        m.submodules.bursts = self.bursts = SyncFIFO(width=self.burst.size, depth=BURSTS)
        asked = self._commands(m)
        taken = self._beats(m)
        m.d.comb += [self.queue.w_en.eq(self.port.data_valid),
                     self.queue.w_data.eq(self.port.data), self.quiet.eq(self.under_way == 0)]
        m.d.sync += [self.owed.eq(self.owed + asked - taken),
                     self.under_way.eq(self.under_way + asked - self.port.data_valid)]
        return m

    def _commands(self, m):
        """Take a burst and ask for its words. Returns whether one is asked for in this cycle."""
        bus, port, gear = self.bus, self.port, self.gear
        left = Signal(range((1 << BURST_BEATS_BITS) * gear.words_per_beat + 1))
        asked, last = Signal(), Signal()
        outside = gear.outside(bus.araddr)
        burst = data.View(self.burst, self.bursts.w_data)
        m.d.comb += [
            port.valid.eq((left != 0) & (self.owed != WORDS) & ~self.stop),
            asked.eq(port.valid & port.ready),
            last.eq((left == 0) | (asked & (left == 1))),
            bus.arready.eq(last & self.bursts.w_rdy),
            self.bursts.w_en.eq(bus.arvalid & bus.arready),
            burst.id.eq(bus.arid), burst.beats.eq(bus.arlen), burst.outside.eq(outside),
            burst.lane.eq(gear.first_lane(bus.araddr)),
        ]
        with m.If(asked):
            m.d.sync += [left.eq(left - 1), port.address.eq(port.address + 1)]
        with m.If(self.bursts.w_en):
            m.d.sync += port.address.eq(gear.first_word(bus.araddr))
            with m.If(outside):
                m.d.sync += left.eq(0)
            with m.Else():
                m.d.sync += left.eq(_words(gear, bus.araddr, bus.arlen))
        return asked

    def _beats(self, m):
        """Make beats of words. Returns whether a word leaves the queue in this cycle."""
        bus, queue, gear = self.bus, self.queue, self.gear
        burst = data.View(self.burst, self.bursts.r_data)
        number = Signal(BURST_BEATS_BITS)           # of the beat in its burst
        free, made, last = Signal(), Signal(), Signal()
        beat, ready, taken = Signal(self.config.bus_bits), Signal(), Signal()
        m.d.comb += [
            free.eq(~bus.rvalid | bus.rready),
            last.eq(number == burst.beats),
            made.eq(free & self.bursts.r_rdy & (ready | burst.outside)),
            self.bursts.r_en.eq(made & last),
            queue.r_en.eq(taken),
        ]
        if gear.beats_per_word > 1:
            lane = Signal(gear.lane_bits)           # counted from the first one of the burst
            here = Signal(gear.lane_bits)
            m.d.comb += [
                here.eq(lane + burst.lane), ready.eq(queue.r_rdy),
                beat.eq(queue.r_data.word_select(here, self.config.bus_bits)),
                taken.eq(made & ~burst.outside & (last | (here == gear.ratio - 1))),
            ]
            with m.If(made):
                m.d.sync += lane.eq(lane + 1)
                with m.If(last):
                    m.d.sync += lane.eq(0)
        else:
            self._collect(m, beat, ready, taken, made & ~burst.outside)
        with m.If(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        with m.If(made):
            m.d.sync += [
                bus.rvalid.eq(1), bus.rdata.eq(beat), bus.rid.eq(burst.id), bus.rlast.eq(last),
                number.eq(number + 1)]
            m.d.sync += bus.rresp.eq(OKAY)
            with m.If(burst.outside):
                m.d.sync += bus.rresp.eq(DECERR)
            with m.If(last):
                m.d.sync += number.eq(0)
        return taken

    def _collect(self, m, beat, ready, taken, made):
        """Several words make a beat: all but the last one are held until it is there."""
        queue, count = self.queue, self.gear.words_per_beat
        if count == 1:
            m.d.comb += [beat.eq(queue.r_data), ready.eq(queue.r_rdy), taken.eq(made)]
            return
        held = Signal((count - 1) * self.words.word_bits, reset_less=True)
        number = Signal(range(count))
        complete = number == count - 1
        m.d.comb += [
            beat.eq(Cat(held, queue.r_data)), ready.eq(queue.r_rdy & complete),
            taken.eq(queue.r_rdy & (~complete | made)),
        ]
        with m.If(taken):
            m.d.sync += [held.eq(Cat(held, queue.r_data)[self.words.word_bits:]),
                         number.eq(number + 1)]


class DramWriter(Component):
    """Writes bursts in their order, and answers each after its last command.

    Rate: a word of the controller a cycle, or a beat a cycle where words are wider. A word's
    command is given when its data are there; data wait in a queue until the controller takes them.
    A burst outside of memory gives no command, and its answer says so.

    Members
    -------
    bus : In(write_channels)
        The write half of an AXI4 slave, for incrementing bursts of whole beats.
    port : Out(write_port)
        To the controller.
    stop : In(1)
        Give no command any more.
    quiet : Out(1)
        The controller waits for no data.
    """

    def __init__(self, config: Config, port: Port):
        self.config, self.gear, self.words = config, Gear(config, port), port
        super().__init__({"bus": In(write_channels(config)), "port": Out(write_port(port)),
                          "stop": In(1), "quiet": Out(1)})

    def elaborate(self, platform):
        m = Module()
        port, word_bits = self.port, self.words.word_bits
        # Data must be there in the cycle after their command: no queue with a register behind.
        m.submodules.words = queue = SyncFIFO(width=word_bits + self.words.word_bytes, depth=WORDS)
        m.submodules.answers = self.answers = SyncFIFO(width=ID_BITS + 1, depth=BURSTS)
        word, strobes, complete = Signal(word_bits), Signal(self.words.word_bytes), Signal()
        given = Signal()
        self.active, self.outside = Signal(), Signal()
        m.d.comb += [
            port.valid.eq(complete & ~self.outside & queue.w_rdy & ~self.stop),
            given.eq(complete & ((port.valid & port.ready) | self.outside)),
            queue.w_en.eq(port.valid & port.ready), queue.w_data.eq(Cat(word, strobes)),
            port.data_valid.eq(queue.r_rdy), queue.r_en.eq(port.data_ready),
            Cat(port.data, port.strobes).eq(queue.r_data),
            self.quiet.eq(~queue.r_rdy),
        ]
        ended = self._words(m, word, strobes, complete, given)
        self._bursts(m, ended, given)
        return m

    def _bursts(self, m, ended, given):
        """Take a burst when the one before has ended; answer it then."""
        bus, port, gear = self.bus, self.port, self.gear
        burst_id = Signal(ID_BITS)
        m.d.comb += [
            # Room for its answer, and for that of a burst that ends in this cycle.
            bus.awready.eq((~self.active | ended) & (self.answers.level < BURSTS - 1)),
            self.answers.w_en.eq(ended),
            self.answers.w_data.eq(Cat(burst_id, self.outside)),
            bus.bvalid.eq(self.answers.r_rdy), self.answers.r_en.eq(bus.bready),
            bus.bid.eq(self.answers.r_data), bus.bresp.eq(OKAY),
        ]
        with m.If(self.answers.r_data[-1]):
            m.d.comb += bus.bresp.eq(DECERR)
        with m.If(ended):
            m.d.sync += self.active.eq(0)
        with m.If(given):
            m.d.sync += port.address.eq(port.address + 1)
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [self.active.eq(1), burst_id.eq(bus.awid),
                         self.outside.eq(gear.outside(bus.awaddr)),
                         port.address.eq(gear.first_word(bus.awaddr))]

    def _words(self, m, word, strobes, complete, given):
        """Make words of beats. Returns whether the last one of a burst is given in this cycle."""
        bus, gear = self.bus, self.gear
        ended = Signal()
        if gear.beats_per_word == 1:
            number = Signal(range(max(2, gear.words_per_beat)))
            final = number == gear.words_per_beat - 1
            m.d.comb += [
                word.eq(bus.wdata.word_select(number, len(word))),
                strobes.eq(bus.wstrb.word_select(number, len(strobes))),
                complete.eq(self.active & bus.wvalid),
                bus.wready.eq(given & final),
                ended.eq(bus.wready & bus.wlast),
            ]
            with m.If(given):
                m.d.sync += number.eq(number + 1)
                with m.If(final):
                    m.d.sync += number.eq(0)
            return ended
        # Beats collect in a word until it is full or the burst is over.
        lane, last = Signal(gear.lane_bits), Signal()
        take = Signal()
        m.d.comb += [take.eq(self.active & (~complete | given) & ~ended & bus.wvalid),
                     bus.wready.eq(self.active & (~complete | given) & ~ended),
                     ended.eq(given & last)]
        with m.If(given):
            m.d.sync += [complete.eq(0), strobes.eq(0)]
        with m.If(take):
            m.d.sync += [
                word.word_select(lane, self.config.bus_bits).eq(bus.wdata),
                strobes.word_select(lane, self.config.bus_bytes).eq(bus.wstrb),
                lane.eq(lane + 1), last.eq(bus.wlast),
                complete.eq(bus.wlast | (lane == gear.ratio - 1)),
            ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += lane.eq(gear.first_lane(bus.awaddr))
        return ended


def _words(gear: Gear, address, length):
    """The words of a burst."""
    if gear.beats_per_word == 1:
        return (length + 1) * gear.words_per_beat
    return ((gear.first_lane(address) + length) >> gear.lane_bits) + 1


class Bridge(Component):
    """Both halves under the names that a Verilog instance has.

    Members
    -------
    s_axi_* : In(read_channels and write_channels)
        An AXI4 slave.
    read_*, write_* : Out(read_port and write_port)
        To two ports of LiteDRAM's crossbar.
    stop : In(1)
        Give the controller no command any more.
    quiet : Out(1)
        The controller owes no data and waits for none: a reset harms nobody, while stopped.
    """

    def __init__(self, config: Config, port: Port):
        self.config, self.port = config, port
        super().__init__({
            **flat_ports("s_axi", read_channels(config).flip()),
            **flat_ports("s_axi", write_channels(config).flip()),
            **flat_ports("read", read_port(port)), **flat_ports("write", write_port(port)),
            "stop": In(1), "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = DramReader(self.config, self.port)
        m.submodules.writer = writer = DramWriter(self.config, self.port)
        for prefix, inside in (("s_axi", reader.bus), ("s_axi", writer.bus),
                               ("read", reader.port), ("write", writer.port)):
            for name, member in inside.signature.members.items():
                inner, outer = getattr(inside, name), getattr(self, f"{prefix}_{name}")
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        m.d.comb += [reader.stop.eq(self.stop), writer.stop.eq(self.stop),
                     self.quiet.eq(reader.quiet & writer.quiet)]
        return m


def bridge_verilog(config: Config, port: Port) -> str:
    """Module `microtron_bridge`, clock `clk`, synchronous reset `rst`."""
    from amaranth.back import verilog

    return str(verilog.convert(Bridge(config, port), name="microtron_bridge", emit_src=False))
