"""The system in simulation: a model of the chip, and a serial line that carries bytes.

The line between is a real one, with bits of a few cycles.
"""

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    Mux,
    ResetSignal,
    Signal,
)

from ....isa.config import Config
from ...facts.board import Board
from .sdr_chip import read_chip
from .small_system import SmallSystem, make_system

BIT_CYCLES = 4
PAUSE = 3                   # bits after a byte, until the system knows it


class SimulatedSystem(Elaboratable):
    """Under the names that the harness knows."""

    def __init__(self, board: Board, config: Config):
        self.chip = read_chip(board)
        self.system = make_system(config, self.chip, bit_cycles=BIT_CYCLES,
                                  hz=board.clock.system_hz)
        self.clock, self.reset = Signal(name="clock"), Signal(name="reset")
        self.line = {name: Signal(bits, name=f"serial_{name}") for name, bits in (
            ("source_valid", 1), ("source_ready", 1), ("source_data", 8),
            ("sink_valid", 1), ("sink_ready", 1), ("sink_data", 8))}

    @property
    def ports(self):
        return [self.clock, self.reset, *self.line.values()]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal().eq(self.clock), ResetSignal().eq(self.reset)]
        m.submodules.system = system = self.system
        _send_bytes(m, system, *(self.line[f"sink_{name}"] for name in ("valid", "ready", "data")))
        _receive_bytes(m, system, *(self.line[f"source_{name}"] for name in ("valid", "data")))
        pins, chip = system.pins, self.chip
        m.submodules.chip = Instance(
            "sdr_chip", p_DATA_BITS=chip.data_bits, p_BANK_BITS=chip.bank_bits,
            p_ROW_BITS=chip.row_bits, p_COLUMN_BITS=chip.column_bits,
            p_ADDRESS_BITS=len(pins.address), p_LATENCY=chip.latency, i_clock=self.clock,
            i_command=pins.command, i_bank=pins.bank, i_address=pins.address, i_mask=pins.mask,
            i_data=pins.data, o_data_out=pins.data_in)
        return m


def _send_bytes(m: Module, system: SmallSystem, valid, ready, data) -> None:
    """Bytes to the system, no sooner than it takes them."""
    timer = Signal(range(BIT_CYCLES))
    bits = Signal(10 + PAUSE, init=-1)      # those to come, the lowest first
    left = Signal(range(11 + PAUSE))
    m.d.comb += [ready.eq((left == 0) & system.ready), system.rx.eq(bits[0])]
    m.d.sync += timer.eq(Mux(timer == 0, BIT_CYCLES - 1, timer - 1))
    with m.If(valid & ready):
        m.d.sync += [bits.eq(Cat(Const(0, 1), data, Const(-1, 1 + PAUSE))), left.eq(10 + PAUSE),
                     timer.eq(BIT_CYCLES - 1)]
    with m.Elif((timer == 0) & (left != 0)):
        m.d.sync += [bits.eq(Cat(bits[1:], Const(1, 1))), left.eq(left - 1)]


def _receive_bytes(m: Module, system: SmallSystem, valid, data) -> None:
    """Bytes from it. Nobody lets them wait."""
    timer, left = Signal(range(2 * BIT_CYCLES)), Signal(range(10))
    bits = Signal(8)
    m.d.comb += [data.eq(bits), valid.eq((left == 1) & (timer == 0))]
    m.d.sync += timer.eq(Mux(timer == 0, BIT_CYCLES - 1, timer - 1))
    with m.If((left == 0) & ~system.tx):
        m.d.sync += [left.eq(9), timer.eq(BIT_CYCLES + BIT_CYCLES // 2 - 1)]
    with m.Elif((timer == 0) & (left != 0)):
        m.d.sync += [bits.eq(Cat(bits[1:8], system.tx)), left.eq(left - 1)]
