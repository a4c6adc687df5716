"""The accelerator's ports, as interfaces that the vendors' tools join."""

from __future__ import annotations

from dataclasses import dataclass

MODULE = "microtron"
IP = "microtron_ip"             # the module around it, which leaves the traces open
MASTER, SLAVE, INTERRUPT, CLOCK, RESET = "m_axi", "s_axi", "interrupt", "clk", "rst"


@dataclass(frozen=True)
class Port:
    name: str
    width: int
    is_output: bool

    @property
    def interface(self) -> str:
        """The bus that it belongs to, if any."""
        prefix = self.name.rpartition("_")[0]
        return prefix if prefix in (MASTER, SLAVE) else ""

    @property
    def role(self) -> str:
        """What it is on that bus: araddr."""
        return self.name.rpartition("_")[2]

    @property
    def declaration(self) -> str:
        vector = f"[{self.width - 1}:0] " if self.width > 1 else ""
        return f"{'output' if self.is_output else 'input'} wire {vector}{self.name}"


def ports_of(config: dict[str, int]) -> list[Port]:
    """Every port of the accelerator but its traces."""
    from amaranth.hdl import Shape
    from amaranth.lib.wiring import Flow, Member

    from ...hw.bus.axi import flat_ports, lite_channels, read_channels, write_channels
    from ...isa.config import Config

    whole = Config(**config)
    members: dict[str, Member] = {**flat_ports(MASTER, read_channels(whole)),
                                  **flat_ports(MASTER, write_channels(whole)),
                                  **flat_ports(SLAVE, lite_channels().flip())}
    found = [Port(name, Shape.cast(member.shape).width, member.flow == Flow.Out)
             for name, member in members.items()]
    return [Port(CLOCK, 1, False), Port(RESET, 1, False), *found, Port(INTERRUPT, 1, True)]


def wrap_accelerator(ports: list[Port], attributes: dict[str, str]) -> str:
    """A module with these ports around the accelerator, with attributes on some of them."""
    declared = ",\n".join(f"{attributes.get(port.name, '')}  {port.declaration}"
                          for port in ports)
    joined = ",\n".join(f"    .{port.name}({port.name})" for port in ports)
    return (f"// The accelerator as a block for the vendor's tool.\nmodule {IP} (\n{declared}\n);\n"
            f"  {MODULE} accelerator (\n{joined}\n  );\nendmodule\n")
