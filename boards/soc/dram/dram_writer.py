"""The half of the bridge to LiteDRAM that writes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from ....hw.bus.axi import ID_BITS, write_channels
from ....isa.config import Config
from .dram_port import BURSTS, DECERR, OKAY, WORDS, Gear, Port, write_port


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
                         self.outside.eq(gear.is_outside(bus.awaddr)),
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
