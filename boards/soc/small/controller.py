"""The controller of SDR memory: bursts of the accelerator, and words of a host, one at a time.

              ┌──────────── CLOSE ◀── a refresh is due, or no word is left ──┐
              ▼                                                              │
    START ──▶ REST ── refresh, or open a row ──▶ OPEN ── a word a cycle ─────┘
     wait, close, refresh, set the mode

Small beats clever: there is no bank that is open beside another one, no queue, and no register for
what the bus shows anyway. A burst that has begun is the only one until its end, so that the
accelerator must not let one wait for another: it takes all that it reads, and has all that it
writes, whatever becomes of its other bursts. An address stays on the bus until the last beat of
its burst has been there, and is taken with it. AXI4 has a slave take an address of reads before it
shows their beats; the accelerator's reader does not ask for that.

A word that was asked for cannot be stopped. When the accelerator does not take a beat, that beat
stays where it is, the words behind it are lost, and are asked for again.

The chip has the other edge of the clock: it sees a command in the middle of the cycle that shows
it, and its data are caught there `latency` cycles later.
"""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ....hw.bus.axi import read_channels, write_channels
from ....hw.transfer.burst_walker import MOST_BEATS
from ....isa.config import Config
from .controller_ports import ALL_BANKS, HOST_BITS, chip_pins, host_port
from .sdr_chip import Chip

OKAY, DECERR = 0, 3
START_REFRESHES = 8         # at least
# Commands: the lines RAS, CAS and WE that are low.
ACTIVATE, READ, WRITE = 0b100, 0b010, 0b011
PRECHARGE, REFRESH, SET_MODE = 0b101, 0b110, 0b111


class Controller(Component):
    """An AXI4 slave and a port for a host before an SDR chip.

    Serves one burst or word at a time; who did not have the last turn has the next, a host before
    both. Rate: a word of the chip a cycle within a burst. Latency of reads: from an address to its
    first beat `latency` + 3 cycles and one for each word of it, when the chip is at rest. A burst
    of writes is answered in the cycle after its last word; who reads then, reads it.

    A burst outside of memory is answered with DECERR: it writes nothing, and what it reads means
    nothing.

    Parameters
    ----------
    base : of memory on the bus, a multiple of its size

    Members
    -------
    reads : In(read_channels)
        Bursts of whole beats that do not cross a multiple of MOST_BEATS. `rdata` come in the
        middle of a cycle.
    writes : In(write_channels)
        The same. A burst waits until its first beat is there.
    host : In(host_port)
    pins : Out(chip_pins)
    period : Out(1)
        A strobe, each time that memory is to be refreshed.
    busy : Out(1)
        There is a burst or a word.
    """

    def __init__(self, config: Config, chip: Chip, base: int):
        self.config, self.chip, self.base = config, chip, base
        super().__init__({
            "reads": In(read_channels(config)), "writes": In(write_channels(config)),
            "host": In(host_port(chip)), "pins": Out(chip_pins(chip)),
            "period": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        self._name_signals()
        m.d.comb += self.busy.eq(self.granted)
        self._count_periods(m)
        self._choose(m)
        self._locate(m)
        self._sequence(m)
        self._write(m)
        self._read(m)
        return m

    def _name_signals(self):
        ratio = self.config.bus_bits // self.chip.data_bits
        self.lane_bits = exact_log2(ratio)
        self.granted = Signal()             # a burst or a word; of whom, and what
        self.reading, self.for_host = Signal(), Signal()
        self.count = Signal(self.lane_bits + exact_log2(MOST_BEATS))    # words that were asked for
        self.over = Signal()                # all of them have been
        self.lane, self.beat = self.count[:self.lane_bits], self.count[self.lane_bits:]
        # A host's word may have several, too.
        self.host_lane = self.lane[:exact_log2(HOST_BITS // self.chip.data_bits)]
        self.row = Signal(self.chip.row_bits)
        self.column = Signal(self.chip.column_bits)
        self.outside = Signal()             # the burst at hand
        self.may_transfer, self.transfer = Signal(), Signal()   # there is room, and it takes place
        self.final = Signal()               # ... with the last word
        self.ended = Signal()               # the burst or word
        self.starting = Signal()
        self.stalled = Signal()             # a beat is not taken
        self.lost = Signal(range(self.chip.latency + 1))        # words behind it
        self.due = Signal()
        self.asked = Signal(self.chip.latency + 1)      # words on their way, the newest first

    def _count_periods(self, m):
        """A power of two needs no comparison; it leaves time for what cannot be interrupted."""
        age = Signal(self.chip.refresh_interval.bit_length() - 1)
        m.d.sync += [age.eq(age + 1), self.period.eq(age == 0)]
        with m.If(self.period):
            m.d.sync += self.due.eq(1)

    def _choose(self, m):
        """Who is next, decided before its row is opened."""
        reads, writes, host = self.reads, self.writes, self.host
        may_write = Signal()
        m.d.comb += may_write.eq(writes.awvalid & writes.wvalid & ~writes.bvalid)
        with m.If(~self.granted):
            m.d.sync += [
                self.granted.eq(reads.arvalid | may_write | host.asks),
                self.for_host.eq(host.asks),
                self.reading.eq(Mux(host.asks, ~host.writes,
                                    reads.arvalid & ~(may_write & self.reading))),
                self.count.eq(0), self.over.eq(0),
            ]
        with m.Elif(self.ended):
            m.d.sync += self.granted.eq(0)

    def _locate(self, m):
        """Column, bank and row of the word at hand, from low bits to high."""
        chip = self.chip
        shift, size = exact_log2(chip.word_bytes), exact_log2(chip.bytes)
        address, start = Signal(size - shift), Signal(size - shift)
        bus = Mux(self.reading, self.reads.araddr, self.writes.awaddr)
        own = self.host.address << exact_log2(HOST_BITS // chip.data_bits)
        # No carry leaves the grid that bursts stay on.
        grid, lanes = len(self.count), self.lane_bits
        low = Signal(grid)
        m.d.comb += [
            start.eq(Mux(self.for_host, own, bus[shift:size])),
            low.eq(Cat(Mux(self.for_host, start[:lanes] | self.lane, self.lane),
                       start[lanes:grid] + self.beat)),
            address.eq(Cat(low, start[grid:])),
            self.column.eq(address), self.row.eq(address[-chip.row_bits:]),
            self.outside.eq(~self.for_host & (bus[size:] != self.base % (1 << len(bus)) >> size)),
        ]
        bank = address[chip.column_bits:][:chip.bank_bits]
        m.d.sync += self.pins.bank.eq(Mux(self.starting, 0, bank))      # 0: the mode itself

    def _sequence(self, m):
        """Commands, each when the one before leaves it room."""
        chip, pins = self.chip, self.pins
        command, address = Signal(3), Signal(len(pins.address))
        pause = Signal(range(max(chip.row_to_column, chip.precharge, chip.refresh)))
        closes_in = Signal(range(max(chip.row_open, chip.write_recovery)))
        m.d.comb += address.eq(self.row)
        m.d.sync += [pins.command.eq(command), pins.address.eq(address)]
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.If(closes_in != 0):
            m.d.sync += closes_in.eq(closes_in - 1)
        with m.FSM() as states:
            self._start(m, command, address, pause)
            with m.State("REST"), m.If(pause == 0):
                with m.If(self.due):
                    m.d.comb += command.eq(REFRESH)
                    m.d.sync += [self.due.eq(0), pause.eq(chip.refresh - 1)]
                with m.Elif(self.granted & ~self.over):
                    m.d.comb += command.eq(ACTIVATE)
                    m.d.sync += [pause.eq(chip.row_to_column - 1), closes_in.eq(chip.row_open - 1)]
                    m.next = "OPEN"
            with m.State("OPEN"):
                m.d.comb += [address.eq(self.column), address[ALL_BANKS].eq(0),
                             self.transfer.eq((pause == 0) & self.may_transfer & ~self.due)]
                with m.If(self.transfer):
                    m.d.comb += command.eq(Mux(self.reading, READ, WRITE))
                    with m.If(~self.reading & (closes_in < chip.write_recovery)):
                        m.d.sync += closes_in.eq(chip.write_recovery - 1)
                with m.If(self.due | (self.transfer & self.final)):
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += address[ALL_BANKS].eq(1)
                with m.If(closes_in == 0):
                    m.d.comb += command.eq(PRECHARGE)
                    m.d.sync += pause.eq(chip.precharge - 1)
                    m.next = "REST"
        m.d.comb += self.starting.eq(states.ongoing("START"))

    def _start(self, m, command, address, pause):
        """Every step takes a whole period: the chip needs far less for any of them."""
        chip = self.chip
        periods = -(-chip.start // (1 << chip.refresh_interval.bit_length() - 1)) + 1
        last = (1 << (periods + START_REFRESHES + 1).bit_length()) - 1
        step = Signal(range(last + 1))
        with m.State("START"):
            m.d.comb += [address.eq(chip.latency << 4), address[ALL_BANKS].eq(step != last)]
            with m.If(self.period):
                m.d.sync += step.eq(step + 1)
                with m.If(step == last):
                    m.d.comb += command.eq(SET_MODE)
                    m.d.sync += pause.eq(chip.refresh - 1)
                    m.next = "REST"
                with m.Elif(step == last - START_REFRESHES - 1):
                    m.d.comb += command.eq(PRECHARGE)
                with m.Elif(step > last - START_REFRESHES - 1):
                    m.d.comb += command.eq(REFRESH)

    def _write(self, m):
        bus, pins, chip = self.writes, self.pins, self.chip
        writes = self.transfer & ~self.reading
        full = Signal()                     # the word at hand is the last of its beat
        m.d.comb += [
            full.eq(self.lane.all()),
            self.final.eq(Mux(
                self.for_host, self.host_lane.all(), full & Mux(
                    self.reading, self.beat == self.reads.arlen[:len(self.beat)], bus.wlast))),
            bus.wready.eq(writes & full & ~self.for_host),
            bus.awready.eq(writes & self.final & ~self.for_host),
        ]
        strobes = bus.wstrb.word_select(self.lane, chip.word_bytes)
        writable = Mux(self.for_host, -1, Mux(self.outside, 0, strobes))
        m.d.sync += [
            pins.drives.eq(writes),
            pins.data.eq(Mux(self.for_host,
                             self.host.data.word_select(self.host_lane, chip.data_bits),
                             bus.wdata.word_select(self.lane, chip.data_bits))),
            pins.mask.eq(Mux(writes, ~writable, self.starting.replicate(chip.word_bytes))),
        ]
        with m.If(self.transfer & self.final):
            m.d.sync += self.over.eq(1)
        with m.If(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(bus.awready):
            m.d.sync += [bus.bvalid.eq(1), bus.bid.eq(bus.awid),
                         bus.bresp.eq(Mux(self.outside, DECERR, OKAY))]
        with m.If(~self.reading):
            m.d.comb += self.ended.eq(self.transfer & self.final)

    def _read(self, m):
        bus, host, chip = self.reads, self.host, self.chip
        m.domains.caught = ClockDomain("caught", clk_edge="neg", reset_less=True, local=True)
        m.d.comb += ClockSignal("caught").eq(ClockSignal())
        caught = Signal(chip.data_bits, reset_less=True)
        before = Signal(self.config.bus_bits - chip.data_bits, reset_less=True)
        came, held = Signal(self.lane_bits), Signal()       # the words of a beat, and all of it
        arrives, behind = self.asked[-1], self.asked[:-1]
        complete = Signal()
        m.d.comb += [
            bus.rdata.eq(Cat(before, caught)), bus.rid.eq(bus.arid),
            bus.rresp.eq(Mux(self.outside, DECERR, OKAY)),
            complete.eq(arrives & came.all()),
            bus.rvalid.eq(complete & ~self.for_host | held),
            bus.rlast.eq(self.over & ~behind.any()),
            self.stalled.eq(bus.rvalid & ~bus.rready),
            self.lost.eq(sum(behind)),
            self.may_transfer.eq(
                ~self.stalled & (self.reading | self.for_host | self.writes.wvalid)),
            bus.arready.eq(bus.rvalid & bus.rready & bus.rlast),
        ]
        with m.If(~held):
            m.d.caught += caught.eq(self.pins.data_in)
        m.d.sync += [self.asked.eq(Cat(self.transfer & self.reading, behind)),
                     held.eq(self.stalled)]
        with m.If(arrives):
            m.d.sync += came.eq(came + 1)
            with m.If(~came.all()):
                m.d.sync += before.eq(Cat(before, caught)[chip.data_bits:])
        with m.If(self.stalled):
            m.d.sync += self.asked.eq(0)
            with m.If(behind.any()):
                m.d.sync += self.over.eq(0)
        with m.If(self.granted):
            m.d.sync += self.count.eq(self.count + Mux(self.stalled, -self.lost, self.transfer))
        with m.Else():
            m.d.sync += came.eq(0)
        m.d.comb += [
            host.data_in.eq(Cat(before, caught)[-HOST_BITS:]),
            host.done.eq(self.for_host & self.ended),
        ]
        with m.If(self.reading):
            m.d.comb += self.ended.eq(Mux(self.for_host, arrives & bus.rlast, bus.arready))
