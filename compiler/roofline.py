"""The least cycles that an operator takes on any schedule: what its efficiency is measured by."""

from __future__ import annotations

from dataclasses import dataclass

from ..isa.config import Config
from ..isa.timing import MemoryTiming
from .operators.conv2d import Conv2d


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Two times that no schedule undercuts, and the larger of them."""

    macs: float             # cycles of the MAC array at full speed
    memory: float           # cycles of the bus at full speed, every byte moved once

    @property
    def cycles(self) -> float:
        return max(self.macs, self.memory)

    @property
    def limit(self) -> str:
        return "macs" if self.macs >= self.memory else "memory"


def bound(macs: int, moved: int, config: Config, memory: MemoryTiming) -> Bound:
    """For so many products, and bytes that have to be moved."""
    return Bound(macs=macs / config.macs_per_cycle,
                 memory=moved * memory.cycles_per_beat / config.bus_bytes)


def convolution_bytes(spec: Conv2d) -> int:
    """Of the pixels that are used, the weights and the outputs."""
    rows = used(spec.height, spec.out_height, spec.kernel[0], spec.stride[0], spec.dilation[0],
                spec.pad[0])
    columns = used(spec.width, spec.out_width, spec.kernel[1], spec.stride[1], spec.dilation[1],
                   spec.pad[2])
    return (spec.images * spec.channels_in * rows * columns
            + spec.channels_in * spec.channels_out * spec.kernel[0] * spec.kernel[1]
            + spec.images * spec.channels_out * spec.out_height * spec.out_width)


def used(size: int, outputs: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    """Rows of an input that some output sees: a kernel of 1 with stride 2 sees every other one."""
    seen = {output * stride + tap * dilation - pad
            for output in range(outputs) for tap in range(kernel)}
    return len(seen & set(range(size)))
