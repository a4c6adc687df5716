"""The system on a Gowin FPGA with memory in its package: oscillator, reset, light and wires."""

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    IOPort,
    Module,
    ResetSignal,
    Signal,
)
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from ....isa.config import Config
from ...facts.board import Board, Wire
from ...facts.errors import BoardError
from ...facts.in_package_sdram import DEVICE_NAMES, INSIDE
from .sdr_chip import read_chip
from .small_system import make_system

BAUD = 115_200
SETTLE_BITS = 16            # of the oscillator's cycles until power and the PLL are stable: 1 ms
VCO_HZ, PHASE_HZ = (500e6, 1250e6), (3e6, 500e6)
MOST_DIVIDER = 64
OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)
PORTS = ("reset_button", "reset_button_n", "serial_rx", "serial_tx", "led_user", "led_user_n")


def pll_dividers(board: Board) -> dict[str, int]:
    """Of the PLL between the oscillator and the system: the nearest frequency, the least input
    divider."""
    hz, wanted = board.clock.hz, board.clock.system_hz
    found = [(abs(hz * feedback / divider - wanted), divider, feedback, output)
             for divider in range(1, MOST_DIVIDER + 1)
             if PHASE_HZ[0] <= hz / divider <= PHASE_HZ[1]
             for feedback in range(1, MOST_DIVIDER + 1) for output in OUTPUT_DIVIDERS
             if VCO_HZ[0] <= hz * feedback / divider * output <= VCO_HZ[1]]
    off, divider, feedback, output = min(found, default=(wanted, 0, 0, 0))
    if off > wanted / 100:
        raise BoardError(f"{board.name}: the PLL makes no {wanted:,} Hz of {hz:,}")
    return {"IDIV_SEL": divider - 1, "FBDIV_SEL": feedback - 1, "ODIV_SEL": output}


def device_of(board: Board) -> str:
    """How the PLL wants to have the part called."""
    for part, name in DEVICE_NAMES.items():
        if board.part.name.startswith(part):
            return name
    raise BoardError(f"{board.name}: part is {board.part.name!r}, but must be as "
                     f"{', '.join(DEVICE_NAMES)}, with memory in its package")


def wires_of(board: Board) -> dict[str, Wire]:
    """The ports that have a place."""
    wires = {f"{group}_{name}": wire for group, signals in board.pins.items()
             for name, wire in signals.items()}
    for name in wires:
        if name not in PORTS:
            raise BoardError(f"{board.name}: pins: there is no port {name!r}; there are "
                             f"{', '.join(PORTS)}")
    return {"clock": Wire((board.clock.pin,), board.clock.standard, ()), **wires}


class GowinBoard(Elaboratable):
    """All that a bitstream holds."""

    def __init__(self, board: Board, config: Config):
        self.board = board
        self.device, self.dividers = device_of(board), pll_dividers(board)
        self.system = make_system(config, read_chip(board), hz=board.clock.system_hz,
                                bit_cycles=round(board.clock.system_hz / BAUD))
        self.wires = {name: Signal(name=name) for name in wires_of(board)}
        self.memory = {name: Signal(width, name=port) for name, (port, width) in INSIDE.items()
                       if name != "dq"}
        self.data = IOPort(INSIDE["dq"][1], name=INSIDE["dq"][0])

    @property
    def ports(self):
        return [*self.wires.values(), *self.memory.values(), self.data]

    def elaborate(self, platform):
        m = Module()
        m.submodules.system = system = self.system
        self._clock(m)
        for name, port in self.wires.items():
            if name == "serial_rx":
                m.d.comb += system.rx.eq(port)
            if name == "serial_tx":
                m.d.comb += port.eq(system.tx)
            if name.startswith("led"):
                m.d.comb += port.eq(~system.busy if name.endswith("_n") else system.busy)
        self._memory(m)
        return m

    def _clock(self, m):
        """The system's clock from the PLL; its reset until all is stable, and by the button."""
        m.domains.power = ClockDomain(reset_less=True)
        m.domains.sync = ClockDomain()
        clock, settled = self.wires["clock"], Signal(SETTLE_BITS)
        m.d.comb += ClockSignal("power").eq(clock)
        with m.If(~settled[-1]):
            m.d.power += settled.eq(settled + 1)
        m.submodules.pll = Instance(
            "rPLL", p_FCLKIN=f"{self.board.clock.hz / 1e6:g}", p_DEVICE=self.device,
            **{f"p_{name}": value for name, value in self.dividers.items()},
            p_CLKFB_SEL="internal", p_DYN_IDIV_SEL="false", p_DYN_FBDIV_SEL="false",
            p_DYN_ODIV_SEL="false", p_DYN_DA_EN="false", p_DYN_SDIV_SEL=2, p_PSDA_SEL="0000",
            p_DUTYDA_SEL="1000", p_CLKOUT_BYPASS="false", p_CLKOUTP_BYPASS="false",
            p_CLKOUTD_BYPASS="false", p_CLKOUTD_SRC="CLKOUT", p_CLKOUTD3_SRC="CLKOUT",
            p_CLKOUT_FT_DIR=1, p_CLKOUTP_FT_DIR=1, p_CLKOUT_DLY_STEP=0, p_CLKOUTP_DLY_STEP=0,
            i_CLKIN=clock, i_CLKFB=0, i_RESET=0, i_RESET_P=0,
            i_FBDSEL=Const(0, 6), i_IDSEL=Const(0, 6), i_ODSEL=Const(0, 6), i_PSDA=Const(0, 4),
            i_DUTYDA=Const(0, 4), i_FDLY=Const(15, 4), o_CLKOUT=ClockSignal())
        pressed = Const(0)
        for name in self.wires:
            if name.startswith("reset"):
                pressed = ~self.wires[name] if name.endswith("_n") else self.wires[name]
        m.submodules.reset = FFSynchronizer(~settled[-1] | pressed, ResetSignal(), init=1)

    def _memory(self, m):
        pins, wires = self.system.pins, self.memory
        m.d.comb += [
            wires["cke"].eq(1), wires["cs_n"].eq(0), wires["ras_n"].eq(~pins.command[2]),
            wires["cas_n"].eq(~pins.command[1]), wires["we_n"].eq(~pins.command[0]),
            wires["dm"].eq(pins.mask), wires["a"].eq(pins.address), wires["ba"].eq(pins.bank)]
        # The chip's clock rises when the system's falls.
        m.submodules.chip_clock = Instance("ODDR", i_CLK=ClockSignal(), i_D0=0, i_D1=1, i_TX=0,
                                           o_Q0=wires["clk"])
        m.submodules.data = data = io.Buffer("io", io.SingleEndedPort(self.data))
        m.d.comb += [data.o.eq(pins.data), data.oe.eq(pins.drives), pins.data_in.eq(data.i)]
