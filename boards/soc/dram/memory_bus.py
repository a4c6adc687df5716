"""The processor's way to memory: the system's bus at a port of LiteDRAM, whichever is wider."""

from litedram.frontend.wishbone import LiteDRAMWishbone2Native
from litex.gen import LiteXModule
from litex.soc.interconnect import wishbone

BITS = 32           # of the bus


class MemoryBus(LiteXModule):
    """`bus` is to be a slave of the system's bus; memory begins at `base` there.

    LiteDRAM's adapter splits words for a narrow port. Where it has to put them together, for a wide
    one as that of DDR3, it mixes those of different addresses: LiteX's converter does it instead.
    """

    def __init__(self, port, base: int):
        self.bus = bus = _interface(BITS)
        if port.data_width > BITS:
            bus = _interface(port.data_width)
            self.converter = wishbone.Converter(self.bus, bus)
        self.adapter = LiteDRAMWishbone2Native(bus, port, base_address=base)


def _interface(bits: int):
    return wishbone.Interface(data_width=bits, address_width=32, addressing="word")
