"""What the controller is between: a chip's wires, and a port for a host."""

from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from ....hw.transfer.burst_walker import MOST_BEATS
from ....isa.config import Config
from ...facts.errors import BoardError
from .sdr_chip import Chip

HOST_BITS = 32
ALL_BANKS = 10              # the bit of an address that closes the rows of all banks


def chip_pins(chip: Chip) -> Signature:
    """The wires to a chip, but for its clock: that is the system's, the other way round. `command`
    has RAS, CAS and WE from the highest bit, and 1 where the chip's own line is low."""
    address_bits = max(chip.row_bits, chip.column_bits, ALL_BANKS + 1)
    return Signature({
        "command": Out(3), "bank": Out(chip.bank_bits), "address": Out(address_bits),
        "mask": Out(chip.word_bytes), "data": Out(chip.data_bits), "drives": Out(1),
        "data_in": In(chip.data_bits),
    })


def host_port(chip: Chip) -> Signature:
    """Words for a host: `asks` stays until `done`, which is when `data_in` is there, if it reads.
    The address counts words."""
    return Signature({
        "asks": Out(1), "writes": Out(1), "address": Out(exact_log2(chip.bytes // 4)),
        "data": Out(HOST_BITS), "done": In(1), "data_in": In(HOST_BITS),
    })


def check_chip(config: Config, chip: Chip) -> None:
    """Refuse what the controller cannot use."""
    row_bytes, burst = chip.word_bytes << chip.column_bits, MOST_BEATS * config.bus_bytes
    if row_bytes < burst:
        raise BoardError(f"a row of memory has {row_bytes} bytes, but a burst up to {burst}")
    if chip.column_bits > ALL_BANKS:
        raise BoardError(f"a row of memory has {1 << chip.column_bits} words, but there is a "
                         f"controller for {1 << ALL_BANKS} at most")
