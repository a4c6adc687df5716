"""The system: a host over a serial line, memory and the accelerator, without a bus between them.

    line ── host ─┬─ registers of the accelerator (AXI4-Lite)
                  └─ controller ── SDR chip
                        └── accelerator (AXI4)
"""

from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from ....hw.bus.axi import lite_channels, read_channels, write_channels
from ....hw.top import Accelerator
from ....isa.config import Config
from .controller import Controller
from .controller_ports import check_chip, chip_pins
from .host import Host
from .sdr_chip import Chip

MEMORY, REGISTERS = 0x4000_0000, 0x9000_0000        # as in a system of LiteX
SILENCE = 0.1               # seconds at most, after which half a command is forgotten


class SmallSystem(Component):
    """All but clocks and pins.

    Parameters
    ----------
    bit_cycles : of a bit on the line
    hz : of the clock

    Members
    -------
    rx : In(1), tx : Out(1)
        The serial line.
    ready : Out(1)
        Nothing is lost that comes over it now; for a simulation, whose line is faster.
    busy : Out(1)
        Memory is at work.
    pins : Out(chip_pins)
    """

    def __init__(self, config: Config, chip: Chip, *, bit_cycles: int, hz: int):
        self.config, self.chip, self.bit_cycles = config, chip, bit_cycles
        period = 1 << chip.refresh_interval.bit_length() - 1
        self.silence_bits = int(SILENCE * hz / period).bit_length() - 1
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "ready": Out(1),
                          "busy": Out(1), "pins": Out(chip_pins(chip))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = Accelerator(self.config)
        m.submodules.controller = controller = Controller(self.config, self.chip, MEMORY)
        m.submodules.host = host = Host(
            self.chip, bit_cycles=self.bit_cycles, silence_bits=self.silence_bits, memory=MEMORY,
            registers=REGISTERS)
        connect(m, host.memory, controller.host)
        connect(m, controller.pins, flipped(self.pins))
        for prefix, bus, signature in (
                ("m_axi", controller.reads, read_channels(self.config)),
                ("m_axi", controller.writes, write_channels(self.config)),
                ("s_axi", host.bus, lite_channels().flip())):
            for name, member in signature.members.items():
                inside, outside = getattr(accelerator, f"{prefix}_{name}"), getattr(bus, name)
                m.d.comb += outside.eq(inside) if member.flow is Out else inside.eq(outside)
        m.d.comb += [host.rx.eq(self.rx), self.tx.eq(host.tx), self.ready.eq(host.ready),
                     host.period.eq(controller.period), self.busy.eq(controller.busy)]
        return m


def make_system(config: Config, chip: Chip, *, bit_cycles: int, hz: int) -> SmallSystem:
    """The system, if the controller can use the chip."""
    check_chip(config, chip)
    return SmallSystem(config, chip, bit_cycles=bit_cycles, hz=hz)
