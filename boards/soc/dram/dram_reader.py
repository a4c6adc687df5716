"""The half of the bridge to LiteDRAM that reads."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out

from ....hw.bus.axi import ID_BITS, read_channels
from ....hw.interfaces import BURST_BEATS_BITS
from ....isa.config import Config
from .dram_port import BURSTS, DECERR, OKAY, WORDS, Gear, Port, read_port


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
        outside = gear.is_outside(bus.araddr)
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
                m.d.sync += left.eq(gear.words(bus.araddr, bus.arlen))
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
