"""The external buses: AXI4 to memory, AXI4-Lite from a driver. Names are those of the standard."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from ...isa.config import Config
from ...isa.registers import REGISTER_BYTES, WINDOW_BYTES
from ..interfaces import BURST_BEATS_BITS

ID_BITS = 1
INCR = 1                    # burst: addresses increase by a beat
BUFFERABLE = 0b0011         # cache: normal memory, not cacheable
LITE_BITS = 8 * REGISTER_BYTES


def _address_channel(config: Config, lead: str) -> dict:
    """Members of AR or AW."""
    members = {"id": ID_BITS, "addr": config.address_bits, "len": BURST_BEATS_BITS, "size": 3,
               "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4, "valid": 1}
    return {**{f"{lead}{name}": Out(width) for name, width in members.items()},
            f"{lead}ready": In(1)}


def read_channels(config: Config) -> Signature:
    """The read half of an AXI4 master: addresses out, beats in."""
    return Signature({
        **_address_channel(config, "ar"),
        "rid": In(ID_BITS), "rdata": In(config.bus_bits), "rresp": In(2), "rlast": In(1),
        "rvalid": In(1), "rready": Out(1),
    })


def write_channels(config: Config) -> Signature:
    """The write half of an AXI4 master: addresses and beats out, responses in."""
    return Signature({
        **_address_channel(config, "aw"),
        "wdata": Out(config.bus_bits), "wstrb": Out(config.bus_bytes), "wlast": Out(1),
        "wvalid": Out(1), "wready": In(1),
        "bid": In(ID_BITS), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
    })


def lite_channels() -> Signature:
    """An AXI4-Lite master, wide enough for the control registers; a slave has
    `In(lite_channels())`."""
    address_bits = exact_log2(WINDOW_BYTES)
    return Signature({
        "awaddr": Out(address_bits), "awprot": Out(3), "awvalid": Out(1), "awready": In(1),
        "wdata": Out(LITE_BITS), "wstrb": Out(REGISTER_BYTES), "wvalid": Out(1), "wready": In(1),
        "bresp": In(2), "bvalid": In(1), "bready": Out(1),
        "araddr": Out(address_bits), "arprot": Out(3), "arvalid": Out(1), "arready": In(1),
        "rdata": In(LITE_BITS), "rresp": In(2), "rvalid": In(1), "rready": Out(1),
    })


def is_error(response):
    """Whether a response is SLVERR or DECERR, rather than OKAY or EXOKAY."""
    return response[1]


def set_constants(m: Module, bus, lead: str, config: Config) -> None:
    """Drive what is constant on AR or AW: full width, incrementing, normal memory."""
    for name, value in (("size", exact_log2(config.bus_bytes)), ("burst", INCR),
                        ("cache", BUFFERABLE), ("lock", 0), ("prot", 0), ("qos", 0)):
        m.d.comb += getattr(bus, f"{lead}{name}").eq(value)


def flat_ports(prefix: str, signature: Signature) -> dict:
    """A bus as members of a top level, one port per signal: `m_axi_araddr`.

    Nested members would be called `m_axi__araddr`, which tools do not recognize as a bus.
    """
    return {f"{prefix}_{name}": member for name, member in signature.members.items()}


def connect_flat(m: Module, prefix: str, bus, top: wiring.Component) -> None:
    """Connect the bus of a unit to the flat ports of the top level."""
    for name, member in bus.signature.members.items():
        inside, outside = getattr(bus, name), getattr(top, f"{prefix}_{name}")
        m.d.comb += outside.eq(inside) if member.flow is Out else inside.eq(outside)
