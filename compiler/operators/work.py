"""The work of an operator, and the least cycles it takes on any schedule: its bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming

BYTE = 8                    # bits


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Three lower limits on the cycles of any schedule; the largest of them is the bound."""

    macs: float             # cycles of the MAC array: one tile product each
    memory: float           # cycles of the bus at full speed, every byte moved once
    alu: float              # cycles of the ALU: `vector_cycles` for each vector

    @property
    def cycles(self) -> float:
        return max(self.macs, self.memory, self.alu)

    @property
    def limit(self) -> str:
        """Which of the three is the largest; of equal ones, the first."""
        times = {"macs": self.macs, "memory": self.memory, "alu": self.alu}
        return max(times, key=lambda name: times[name])


@dataclass(frozen=True, kw_only=True)
class Work:
    """The least work that an operator takes, however it is scheduled."""

    macs: int               # products of two numbers that the result needs
    products: int           # of tiles: channels, images and rows fill up whole ones
    bytes: int              # of inputs that are used, of weights and of the output
    passes: int             # vectors that go through the ALU

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        return Bound(macs=self.products,
                     memory=self.bytes * memory.cycles_per_beat / config.bus_bytes,
                     alu=self.passes * config.vector_cycles)

    def utilization(self, cycles: float, config: Config) -> float:
        """The fraction of the MAC array's products that contribute to the result."""
        return self.macs / (cycles * config.macs_per_cycle)


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
