"""A board as LiteX sees it: pins under names, clocks from the oscillator, pads of the memory."""

from types import SimpleNamespace

from litex.build.generic_platform import GenericPlatform, IOStandard, Misc, Pins, Subsignal
from litex.build.gowin.platform import GowinPlatform
from litex.build.io import DDROutput
from litex.build.lattice import LatticeECP5Platform
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex.soc.cores.clock.gowin_gw2a import GW2APLL
from migen import ClockDomain, ClockSignal, If, Instance, Signal
from migen.genlib.resetsync import AsyncResetSynchronizer

from ..facts.board import Board, Wire
from ..facts.ecp5_pll import CELL, choose_settings, format_constraint
from ..facts.errors import BoardError
from ..facts.in_package_sdram import DEVICE_NAMES, INSIDE
from .dram.chip_check import check_chip

SERIAL_MODEL = ("serial", 0, *(Subsignal(name, Pins(bits)) for name, bits in (
    ("source_valid", 1), ("source_ready", 1), ("source_data", 8),
    ("sink_valid", 1), ("sink_ready", 1), ("sink_data", 8))))


class Simulation(GenericPlatform):
    """Clock, reset and a serial line that carries bytes instead of bits."""

    def __init__(self):
        super().__init__("simulation", [("clock", 0, Pins(1)), ("reset", 0, Pins(1)),
                                        SERIAL_MODEL], name="soc")


def platform_of(board: Board):
    """The FPGA and its pins, if they and the memory chip are what the board's file says."""
    check_chip(board)
    clock = (Pins(board.clock.pin), IOStandard(board.clock.standard))
    pins: list[tuple[object, ...]] = [("clock", 0, *clock)]
    for group, wires in board.pins.items():
        pins.append((group, 0, *(Subsignal(name, *_constraints(wire))
                                 for name, wire in wires.items())))
    if board.flow == "ecp5":
        return LatticeECP5Platform(board.part.name, pins, toolchain="trellis")
    if board.flow == "gowin":
        pins += [(name, 0, Pins(bits)) for name, bits in INSIDE.values()]
        names = [name for part, name in DEVICE_NAMES.items() if board.part.name.startswith(part)]
        if names:
            return GowinPlatform(board.part.name, pins, toolchain="apicula", devicename=names[0])
    raise BoardError(f"{board.name}: part is {board.part.name!r}, for which there is no system "
                     f"with a soft processor")


def _constraints(wire: Wire):
    return (Pins(" ".join(wire.places)), IOStandard(wire.standard),
            *(Misc(option) for option in wire.options))


class SimulatedClocks(LiteXModule):
    """From the test bench."""

    def __init__(self, board: Board, platform):
        self.rst = Signal()
        self.cd_sys = ClockDomain("sys")
        self.comb += [self.cd_sys.clk.eq(platform.request("clock")),
                      self.cd_sys.rst.eq(platform.request("reset"))]
        if board.clock.is_crossed:
            platform.add_extension([("accelerator_clock", 0, Pins(1))])
            self.cd_accelerator = ClockDomain("accelerator", reset_less=True)
            self.accelerator_locked = Signal(reset=1)
            self.comb += self.cd_accelerator.clk.eq(platform.request("accelerator_clock"))


class Clocks(LiteXModule):
    """The system's clock and those that its memory needs, once power is stable.

    An SDR chip is clocked a quarter of a cycle after the system at the same rate, and half of one
    at the double; DDR3 has its clock stopped while the delays of its interface settle.
    """

    def __init__(self, board: Board, platform):
        self.rst = Signal()
        self.cd_sys = ClockDomain("sys")
        self.cd_por = ClockDomain("por", reset_less=True)
        oscillator = platform.request("clock")
        count, settled = Signal(16, reset=0xFFFF), Signal()
        self.comb += [self.cd_por.clk.eq(oscillator), settled.eq(count == 0)]
        self.sync.por += If(~settled, count.eq(count - 1))
        if board.flow == "ecp5":
            self.pll = ECP5PLL()
        else:
            self.pll = GW2APLL(devicename=platform.devicename, device=platform.device)
        self.comb += self.pll.reset.eq(~settled | self.rst | _button(board, platform))
        self.pll.register_clkin(oscillator, board.clock.hz)
        if board.memory.kind == "ddr3":
            self._ddr3(board.clock.system_hz)
        else:
            self._sdr(board, platform)
        if board.clock.is_crossed:
            self._accelerator(board, platform, oscillator)

    def _accelerator(self, board: Board, platform, oscillator) -> None:
        """A PLL of its own: one with other outputs has only few frequencies. The reset comes from
        the system's side of the crossing."""
        self.cd_accelerator = ClockDomain("accelerator", reset_less=True)
        settings = choose_settings(board.clock.hz, board.clock.compute_hz)
        self.accelerator_locked, feedback = Signal(), Signal()
        platform.add_platform_command(format_constraint(board.clock.compute_hz),
                                      clk=self.cd_accelerator.clk)
        self.specials += Instance(
            "EHXPLLL", name=CELL, i_CLKI=oscillator, i_RST=self.pll.reset, i_STDBY=0,
            o_CLKOP=self.cd_accelerator.clk, o_CLKOS=feedback, o_LOCK=self.accelerator_locked,
            **{f"p_{name}": value for name, value in settings.parameters.items()},
            attr=[("ICP_CURRENT", "6"), ("LPF_RESISTOR", "16"),
                  ("MFG_ENABLE_FILTEROPAMP", "1"), ("MFG_GMCREF_SEL", "2")])

    def _sdr(self, board: Board, platform) -> None:
        hz = board.clock.system_hz
        self.pll.create_clkout(self.cd_sys, hz)
        if board.flow == "gowin":           # its PLL has no second phase for this: the other edge
            self.specials += DDROutput(0, 1, platform.request(INSIDE["clk"][0]),
                                       ClockSignal("sys"))
            return
        self.cd_chip = ClockDomain("chip", reset_less=True)
        if board.memory.rate == "1:2":
            self.cd_sys2x = ClockDomain("sys2x")
            self.pll.create_clkout(self.cd_sys2x, 2 * hz)
            self.pll.create_clkout(self.cd_chip, 2 * hz, phase=180, with_reset=False)
            # Without it nextpnr takes the system's frequency for this clock, too. Yosys drops this
            # name of the net unless it is to keep it, and nextpnr ignores what has no net.
            self.cd_sys2x.clk.attr.add("keep")
            platform.add_platform_command(format_constraint(2 * hz), clk=self.cd_sys2x.clk)
        else:
            self.pll.create_clkout(self.cd_chip, hz, phase=90, with_reset=False)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock").clk, ClockSignal("chip"))

    def _ddr3(self, hz: int) -> None:
        self.cd_init, self.cd_fast = ClockDomain("init"), ClockDomain("fast")
        self.cd_sys2x = ClockDomain("sys2x")
        self.stop, self.reset = Signal(), Signal()
        self.pll.create_clkout(self.cd_fast, 2 * hz)
        self.pll.create_clkout(self.cd_init, 25e6)
        self.specials += [
            Instance("ECLKSYNCB", i_ECLKI=self.cd_fast.clk, i_STOP=self.stop,
                     o_ECLKO=self.cd_sys2x.clk),
            Instance("CLKDIVF", p_DIV="2.0", i_ALIGNWD=0, i_CLKI=self.cd_sys2x.clk,
                     i_RST=self.reset, o_CDIVX=self.cd_sys.clk),
            AsyncResetSynchronizer(self.cd_sys, ~self.pll.locked | self.reset),
        ]


def _button(board: Board, platform):
    """Whether somebody presses reset."""
    wires = board.pins.get("reset", {})
    if not wires:
        return 0
    group = platform.request("reset")
    return group.button if "button" in wires else ~group.button_n


def memory_pads(board: Board, platform):
    """The pins of the memory chip."""
    for group in ("sdram", "ddram"):
        if group in board.pins:
            return platform.request(group)
    return SimpleNamespace(**{name: platform.request(pin) for name, (pin, _) in INSIDE.items()
                              if name != "clk"})


def tie_pins(board: Board, platform, busy):
    """Statements for pins that only want a level: a light while memory is busy, and what would
    reset the FPGA."""
    statements = []
    if "led" in board.pins:
        light = platform.request("led")
        statements.append(light.user.eq(busy) if "user" in board.pins["led"]
                          else light.user_n.eq(~busy))
    if "wifi" in board.pins:
        statements.append(platform.request("wifi").gpio0.eq(1))
    return statements
