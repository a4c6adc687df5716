"""The work of an operator, and the least cycles it takes on any schedule: its bound."""

from __future__ import annotations

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from .cost_model import BURST

BYTE = 8                    # bits
STALL_CHANCES = 256         # of which `stalls` are those of a channel in a cycle
LEAST_PARAMETERS = 4 + 4 + 1        # bytes of a channel: bias, multiplier, shift


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Three lower limits on the cycles of any schedule; the largest of them is the bound."""

    macs: float             # cycles of the MAC array: one tile product each
    memory: float           # cycles of the bus at full speed, every byte moved once
    alu: float              # cycles of the ALU: `vector_cycles` for each vector
    latency: float = 0      # of a program of its own, in which none of the three can work

    @property
    def cycles(self) -> float:
        """Among other layers of a stream, which hide each other's latency."""
        return max(self.limits.values())

    @property
    def limits(self) -> dict[str, float]:
        """The three, by name."""
        return {"macs": self.macs, "memory": self.memory, "alu": self.alu}

    @property
    def alone(self) -> float:
        """As a program of its own."""
        return self.cycles + self.latency

    @property
    def limit(self) -> str:
        """Which of the three is the largest; of equal ones, the first."""
        times = self.limits
        return max(times, key=lambda name: times[name])


@dataclass(frozen=True, kw_only=True)
class Work:
    """The least work that an operator takes, however it is scheduled."""

    macs: int               # products of two numbers that the result needs
    products: int           # of tiles: channels, images and rows fill up whole ones
    bytes: int              # of inputs that are used, of weights and of the output
    passes: int             # vectors that go through the ALU
    written: int = 0        # bytes of the output, of those above
    pairs: int = 0          # operands that it reads beside one for each pass: of two, and sums of
                            # the MAC array that are added to
    kept: int = 0           # passes whose result stays in the accumulator
    filled: int = 0         # bytes, of those above, that are loaded into it
    parameters: int = 0     # bytes of bias, multiplier and shift, beside those above

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        """A bank of the accumulator gives one operand and takes one beat or result a cycle. A
        program reads its first instruction, then its first operands, and ends with the answer to
        its last write."""
        reads = self.pairs if config.acc_banks == 1 else 0
        writes = (self.kept + self.filled / config.bus_bytes) / config.acc_banks
        return Bound(macs=self.products, memory=self._memory_cycles(config, memory),
                     alu=max(self.passes * config.vector_cycles + reads, writes),
                     latency=2 * memory.read_latency + memory.write_latency)

    def _memory_cycles(self, config: Config, memory: MemoryTiming) -> float:
        """Reads, writes and both together each take their time, the latter on a shared bus.

        A beat waits until its channel does not stall, which takes 1 / (1 - p) cycles in the mean;
        on a shared bus, until one of two channels does not."""
        calm, beat = 1 - memory.stalls / STALL_CHANCES, memory.cycles_per_beat - 1
        read, written = (each / config.bus_bytes for each in (
            self.bytes + self.parameters - self.written, self.written))
        either = 1 - (1 - calm) ** 2
        together = (read + written) * (beat + 1 / either) if memory.shared else 0
        return max(together, read * (beat + 1 / calm), written * (beat + 1 / calm),
                   _cycles_in_flight(read, config.reads_in_flight, memory.read_latency, memory),
                   _cycles_in_flight(written, config.writes_in_flight, memory.write_latency,
                                     memory))

    def utilization(self, cycles: float, config: Config) -> float:
        """The fraction of the MAC array's products that contribute to the result."""
        return self.macs / (cycles * config.macs_per_cycle)


def _cycles_in_flight(beats: float, most: int, latency: int, memory: MemoryTiming) -> float:
    """Cycles of beats in the longest bursts, of which so many may be in flight: each is for its
    latency, the cycle of its address, and from its first beat to its last."""
    bursts = beats / BURST
    return (bursts * (latency + 1) + (beats - bursts) * memory.cycles_per_beat) / most


def parameter_bytes(channels: int, config: Config) -> int:
    """Bytes of the parameters of channels, each loaded once, for all rows of a tile: bias and
    multiplier have 32 bits; a shift can be loaded with 8."""
    return channels * config.batch * LEAST_PARAMETERS


def weight_bytes(count: int, config: Config) -> int:
    """Bytes of weights, which take 8 or 4 bits each."""
    return -(-count * config.wgt_bits // BYTE)


def rows_read(size: int, outputs: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    """Rows of an input that outputs read: a kernel of 1 with stride 2 reads every other one."""
    if dilation == 1 and stride <= kernel:          # windows touch: all between first and last
        return max(0, min(size, (outputs - 1) * stride + kernel - pad) - max(0, -pad))
    seen = np.zeros((outputs - 1) * stride + (kernel - 1) * dilation + 1, bool)
    for tap in range(kernel):
        seen[tap * dilation:][:(outputs - 1) * stride + 1:stride] = True
    first = max(0, pad)
    return int(seen[first:max(first, size + pad)].sum())
