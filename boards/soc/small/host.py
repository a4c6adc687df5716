"""A host's way to memory and registers: a serial line that speaks as LiteX's bridge (UARTBone).

    write       01 count address:4 word:4 …         nothing comes back
    read        02 count address:4                  word:4 … comes back

Addresses count words; numbers have their high bytes first, and bytes their low bits. A count of 0
is 256. Other commands are followed by a count and an address, too, and do nothing.

One register is all: bits come into it from the line, words into it from memory, and bits go from it
to the line. So there is one direction at a time: what comes while an answer is sent is lost.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ....hw.bus.axi import lite_channels
from ....isa.registers import REGISTER_BYTES, WINDOW_BYTES
from .controller_ports import HOST_BITS, host_port
from .sdr_chip import Chip

WRITES, READS = 1, 2        # commands
STOP = 9                    # the last bit of a byte: one to start and eight come before


class State(Enum):
    """Of a command."""

    COMMAND, COUNT, ADDRESS, RECEIVE, WRITE, READ, SEND = range(7)


class Host(Component):
    """The line, the commands on it, and the accesses that they ask for.

    A write must be over before two more bits have come, and is long before at 115,200 baud. A byte
    without its stop bit ends the command that it is part of, and so does a silence of 2 **
    `silence_bits` periods. What is neither memory nor a register is read as ones.

    Parameters
    ----------
    bit_cycles : of a bit on the line
    memory, registers : where they are on the host's bus, in bytes

    Members
    -------
    rx : In(1), tx : Out(1)
        The line.
    period : In(1)
        A strobe by which silence is measured.
    ready : Out(1)
        Nothing is lost that comes now.
    memory : Out(host_port)
    bus : Out(lite_channels)
        To the registers.
    """

    def __init__(self, chip: Chip, *, bit_cycles: int, silence_bits: int, memory: int,
                 registers: int):
        self.bit_cycles, self.silence_bits = bit_cycles, silence_bits
        self.places = {"memory": (memory, chip.bytes), "registers": (registers, WINDOW_BYTES)}
        super().__init__({
            "rx": In(1, init=1), "tx": Out(1, init=1), "period": In(1), "ready": Out(1),
            "memory": Out(host_port(chip)), "bus": Out(lite_channels()),
        })

    def elaborate(self, platform):
        m = Module()
        self.state = Signal(State)
        self.word = Signal(HOST_BITS, reset_less=True)      # the first byte is its lowest
        self.byte = self.word[-8:]                          # the last that came
        self.address = Signal(len(self.memory.address) + 1, reset_less=True)
        self.inside = {name: Signal(name=f"in_{name}", reset_less=True) for name in self.places}
        self.shift, self.load = Signal(), Signal()
        self.sends, self.moved = Signal(), Signal()         # of a byte: its direction, its end
        self.given_up = Signal()
        self.done = Signal()                                # the access at hand
        self._line(m)
        self._commands(m)
        self._access(m)
        return m

    def _line(self, m):
        """Bytes: their bits, one after the other."""
        rx, before, active, tick = Signal(init=1), Signal(), Signal(), Signal()
        m.submodules.line = FFSynchronizer(self.rx, rx, init=1)
        timer = Signal(range(self.bit_cycles))
        bit = Signal(range(STOP + 1))
        m.d.comb += [tick.eq(timer == 0), self.shift.eq(active & tick & (bit != 0) & (bit != STOP)),
                     self.moved.eq(active & tick & (bit == STOP) & (self.sends | rx))]
        m.d.sync += [timer.eq(Mux(tick, self.bit_cycles - 1, timer - 1)), before.eq(rx)]
        with m.If(~active):
            m.d.sync += [
                bit.eq(0), active.eq(self.sends | before & ~rx),
                timer.eq(Mux(self.sends, self.bit_cycles - 1, self.bit_cycles // 2 - 1))]
        with m.Elif(tick):
            m.d.sync += bit.eq(bit + 1)
            with m.If(self.sends):
                m.d.sync += self.tx.eq((bit == STOP) | (bit != 0) & self.word[0])
            with m.If((bit == STOP) | (bit == 0) & rx & ~self.sends):
                m.d.sync += active.eq(0)
        with m.If(self.shift):
            m.d.sync += self.word.eq(Cat(self.word[1:], rx))
        self._give_up(m, active & tick & (bit == STOP) & ~self.sends & ~rx)

    def _give_up(self, m, broken):
        silence = Signal(self.silence_bits + 1)
        with m.If(self.moved | self.given_up):
            m.d.sync += silence.eq(0)
        with m.Elif(self.period):
            m.d.sync += silence.eq(silence + 1)
        m.d.comb += self.given_up.eq(broken | silence[-1])

    def _commands(self, m):
        state = self.state
        writes, reads = Signal(reset_less=True), Signal(reset_less=True)
        left = Signal(8, reset_less=True)
        place = Signal(2)                   # of a byte in its word
        whole, another = Signal(), Signal()
        m.d.comb += [whole.eq(self.moved & place.all()), self.sends.eq(state == State.SEND)]
        with m.If(self.moved):
            m.d.sync += place.eq(place + 1)
        with m.Switch(state):
            with m.Case(State.COMMAND), m.If(self.moved):
                m.d.sync += [writes.eq(self.byte == WRITES), reads.eq(self.byte == READS),
                             state.eq(State.COUNT)]
            with m.Case(State.COUNT), m.If(self.moved):
                m.d.sync += [left.eq(self.byte), place.eq(0), state.eq(State.ADDRESS)]
            with m.Case(State.ADDRESS), m.If(whole):
                m.d.sync += state.eq(Mux(writes, State.RECEIVE,
                                         Mux(reads, State.READ, State.COMMAND)))
            with m.Case(State.RECEIVE), m.If(whole):
                m.d.sync += state.eq(State.WRITE)
            with m.Case(State.WRITE), m.If(self.done):
                m.d.comb += another.eq(1)
                m.d.sync += state.eq(State.RECEIVE)
            with m.Case(State.READ), m.If(self.done):
                m.d.comb += self.load.eq(1)
                m.d.sync += state.eq(State.SEND)
            with m.Case(State.SEND), m.If(whole):
                m.d.comb += another.eq(1)
                m.d.sync += state.eq(State.READ)
        with m.If(another):
            m.d.sync += left.eq(left - 1)
        with m.If(self.given_up | another & (left == 1)):
            m.d.sync += state.eq(State.COMMAND)
        self._locate(m, (state == State.ADDRESS) & whole, another)

    def _locate(self, m, take, another):
        """Where the next access is: as the host says, then word after word."""
        given = _swap_bytes(self.word)         # counts words
        shift = exact_log2(HOST_BITS // 8)
        with m.If(another):
            m.d.sync += self.address.eq(self.address + 1)
        with m.If(take):
            m.d.sync += self.address.eq(given[:len(self.memory.address)])
            for name, (start, size) in self.places.items():
                bits = exact_log2(size) - shift
                m.d.sync += self.inside[name].eq(given[bits:] == start >> bits + shift)

    def _access(self, m):
        state, bus, memory = self.state, self.bus, self.memory
        writes, reads = state == State.WRITE, state == State.READ
        beyond = self.address[-1]           # of memory, in which the command began
        to_memory, to_registers = self.inside["memory"] & ~beyond, self.inside["registers"]
        begun = Signal()                    # the registers know of it
        offset = self.address[:exact_log2(WINDOW_BYTES // REGISTER_BYTES)]
        place = Cat(Const(0, exact_log2(REGISTER_BYTES)), offset)
        m.d.comb += [
            memory.asks.eq((writes | reads) & to_memory), memory.writes.eq(writes),
            memory.address.eq(self.address), memory.data.eq(_swap_bytes(self.word)),
            bus.awaddr.eq(place), bus.araddr.eq(place), bus.wdata.eq(_swap_bytes(self.word)),
            bus.wstrb.eq(-1), bus.bready.eq(1), bus.rready.eq(1),
            bus.awvalid.eq(writes & to_registers & ~begun), bus.wvalid.eq(bus.awvalid),
            bus.arvalid.eq(reads & to_registers & ~begun),
            self.done.eq(Mux(to_memory, memory.done,
                             ~to_registers | bus.bvalid | bus.rvalid)),
            self.ready.eq(~(writes | reads | self.sends)),
        ]
        with m.If(bus.awvalid & bus.awready | bus.arvalid & bus.arready):
            m.d.sync += begun.eq(1)
        with m.If(self.done):
            m.d.sync += begun.eq(0)
        with m.If(self.load):
            m.d.sync += self.word.eq(_swap_bytes(Mux(to_memory, memory.data_in, Mux(
                to_registers, bus.rdata, (1 << HOST_BITS) - 1))))


def _swap_bytes(word):
    """The bytes of a word the other way round."""
    return Cat(word.word_select(number, 8) for number in reversed(range(len(word) // 8)))
