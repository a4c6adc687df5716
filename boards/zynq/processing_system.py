"""The processing system of a Zynq-7000, as the fabric sees it: the primitive PS7."""

from collections.abc import Mapping

from amaranth.hdl import Const, Instance, Signal, Value
from amaranth.lib.wiring import Out

from .axi3 import gp_port, hp_port

CONTROL_PORT, MEMORY_PORT = "MAXIGP0", "SAXIHP0"
INTERRUPTS = 20             # of IRQF2P; bit 0 is number 61 of the interrupt controller
CLOCKS = 4

# Inputs that nothing drives read as ones in this fabric. Those that could start something in the
# processing system get zeros, as vendor tools give to all that is left open.
QUIET: Mapping[str, int] = {
    **{f"SAXI{port}{signal}VALID": 1 for port in ("HP1", "HP2", "HP3", "GP0", "GP1", "ACP")
       for signal in ("AR", "AW", "W")},
    **{f"MAXIGP1{signal}": 1 for signal in ("ARREADY", "AWREADY", "WREADY", "RVALID", "BVALID")},
    **{f"DMA{number}DRVALID": 1 for number in range(4)},
    "DDRARB": 4, "EVENTEVENTI": 1, "EMIOSRAMINTIN": 1, "FTMTF2PTRIG": 4, "FTMDTRACEINVALID": 1,
    "FPGAIDLEN": 1, "FCLKCLKTRIGN": CLOCKS,
    f"{MEMORY_PORT}RDISSUECAP1EN": 1, f"{MEMORY_PORT}WRISSUECAP1EN": 1,
}


class Ps7Ports:
    """The signals between the fabric and PS7.

    clock       FCLKCLK0, which the processors set to the MHz that the fabric was built for
    reset       FCLKRESETN0, inverted
    interrupts  IRQF2P
    control     M_AXI_GP0, of which PS7 is the master
    memory      S_AXI_HP0, of which it is the slave
    """

    def __init__(self):
        self.clocks, self.resets = Signal(CLOCKS, name="fclk"), Signal(CLOCKS, name="fclk_reset_n")
        self.clock, self.reset = self.clocks[0], ~self.resets[0]
        self.interrupts = Signal(INTERRUPTS, name="irq_f2p")
        self.control = gp_port.create(path=("m_axi_gp0",))
        self.memory = hp_port.flip().create(path=("s_axi_hp0",))

    def connections(self, clock) -> dict[str, Value]:
        """Every connected port of the primitive, with `i_` or `o_` in front of its name. All buses
        run on `clock`."""
        ports = {"o_FCLKCLK": self.clocks, "o_FCLKRESETN": self.resets,
                 "i_IRQF2P": self.interrupts,
                 f"i_{CONTROL_PORT}ACLK": clock, f"i_{MEMORY_PORT}ACLK": clock}
        for name, bus in ((CONTROL_PORT, self.control), (MEMORY_PORT, self.memory)):
            for member, of in bus.signature.members.items():
                way = "o" if of.flow is Out else "i"
                ports[f"{way}_{name}{member.upper()}"] = getattr(bus, member)
        ports |= {f"i_{name}": Const(0, width) for name, width in QUIET.items()}
        return ports


def ps7(ports: Ps7Ports, clock) -> Instance:
    """The primitive itself. Memory, clocks and pins of the processors are set by their own
    software; in the fabric nothing is to be configured."""
    return Instance("PS7", **ports.connections(clock))
