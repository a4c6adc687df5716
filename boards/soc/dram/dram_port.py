"""A port of LiteDRAM's crossbar, and how beats of the accelerator's bus become words of it."""

from dataclasses import dataclass

from amaranth.hdl import Const
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from ....isa.config import Config

OKAY, DECERR = 0, 3
BURSTS = 16         # that may wait for their data, or for their answer to be taken
WORDS = 32          # of the controller that may be under way: more than its latency in cycles


@dataclass(frozen=True)
class Port:
    """What LiteDRAM's crossbar offers, and the addresses that it has on the bus."""

    word_bits: int          # of the controller: what it moves in a cycle
    address_bits: int       # of the number of a word
    base: int               # of memory on the bus
    size: int               # bytes, a power of two that divides the base

    @property
    def word_bytes(self) -> int:
        return self.word_bits // 8


def read_port(port: Port) -> Signature:
    """LiteDRAM's native port for reads. Data come in the order of commands, and cannot wait."""
    return Signature({
        "valid": Out(1), "ready": In(1), "address": Out(port.address_bits),
        "data_valid": In(1), "data": In(port.word_bits),
    })


def write_port(port: Port) -> Signature:
    """LiteDRAM's native port for writes. It takes data some cycles after a command: they must be
    there in the cycle after the command was taken."""
    return Signature({
        "valid": Out(1), "ready": In(1), "address": Out(port.address_bits),
        "data_valid": Out(1), "data_ready": In(1), "data": Out(port.word_bits),
        "strobes": Out(port.word_bytes),
    })


class Gear:
    """How beats of the bus and words of the controller fit together."""

    def __init__(self, config: Config, port: Port):
        wide, narrow = max(config.bus_bits, port.word_bits), min(config.bus_bits, port.word_bits)
        self.ratio = wide // narrow
        self.words_per_beat = max(1, config.bus_bits // port.word_bits)
        self.beats_per_word = max(1, port.word_bits // config.bus_bits)
        self.lane_bits = exact_log2(self.ratio)
        self.word_shift = exact_log2(port.word_bytes)
        self.beat_shift = exact_log2(config.bus_bytes)
        self.port = port

    def is_outside(self, address):
        """Whether a burst does not lie in memory; none crosses 4 KiB."""
        shift = exact_log2(self.port.size)
        return address[shift:] != self.port.base % (1 << len(address)) >> shift

    def first_word(self, address):
        return address[self.word_shift:exact_log2(self.port.size)]

    def first_lane(self, address):
        """The beat of the word in which a burst begins."""
        if self.beats_per_word == 1:
            return Const(0, 1)
        return address[self.beat_shift:self.word_shift]

    def words(self, address, length):
        """The words of a burst of `length` + 1 beats."""
        if self.beats_per_word == 1:
            return (length + 1) * self.words_per_beat
        return ((self.first_lane(address) + length) >> self.lane_bits) + 1
