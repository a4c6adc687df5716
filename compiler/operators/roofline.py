"""The least cycles that an operator takes on any schedule: what its efficiency is measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...isa.config import Config
from ...isa.timing import MemoryTiming
from .conv2d import Conv2d, blocks_of
from .dense import Dense
from .depthwise import Depthwise
from .elementwise import Elementwise, Operation
from .grouped import Grouped
from .pool import Pool


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


def bound_of(spec: Any, config: Config, memory: MemoryTiming) -> Bound:
    """For an operator, with its channels, images and rows filled up to whole tiles, as the MAC
    array sees them. The ALU is not counted."""
    return bound(products(spec, config) * config.macs_per_cycle, moved_bytes(spec), config, memory)


def products(spec: Any, config: Config) -> int:
    """Tile products that a result needs."""
    match spec:
        case Depthwise():
            return _pixels(spec, config) * blocks_of(spec.channels_out, config.depthwise_lanes)
        case Grouped():         # lanes that other groups fill are not wasted
            return -(-spec.macs // config.macs_per_cycle)
        case Conv2d():
            return (_pixels(spec, config) * blocks_of(spec.channels_in, config.block_in)
                    * blocks_of(spec.channels_out, config.block_out))
        case Dense():
            return (spec.matrices * blocks_of(spec.rows, config.batch)
                    * blocks_of(spec.inputs, config.block_in)
                    * blocks_of(spec.outputs, config.block_out))
    return 0


def _pixels(spec: Conv2d, config: Config) -> int:
    """Taps of all pixels of the output."""
    return (blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width
            * spec.kernel[0] * spec.kernel[1])


def moved_bytes(spec: Any) -> int:
    """Of the inputs that are used, the weights and the outputs: what any schedule moves."""
    match spec:
        case Conv2d():
            return convolution_bytes(spec)
        case Dense():
            return spec.bytes
        case Pool():
            return spec.images * spec.channels * (
                spec.height * spec.width + spec.out_shape[0] * spec.out_shape[1])
        case Elementwise():
            operands = 1 if spec.operation == Operation.RESCALE else 2
            return (operands + 1) * spec.images * spec.channels * spec.height * spec.width
    return 0


def convolution_bytes(spec: Conv2d) -> int:
    """Of the pixels that are used, the weights and the outputs."""
    rows = used(spec.height, spec.out_height, spec.kernel[0], spec.stride[0], spec.dilation[0],
                spec.pad[0])
    columns = used(spec.width, spec.out_width, spec.kernel[1], spec.stride[1], spec.dilation[1],
                   spec.pad[2])
    inputs = spec.channels_in
    if isinstance(spec, Depthwise):
        inputs = 1
    elif isinstance(spec, Grouped):
        inputs = spec.group_in
    return (spec.images * spec.channels_in * rows * columns
            + inputs * spec.channels_out * spec.kernel[0] * spec.kernel[1]
            + spec.images * spec.channels_out * spec.out_height * spec.out_width)


def used(size: int, outputs: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    """Rows of an input that some output sees: a kernel of 1 with stride 2 sees every other one."""
    seen = {output * stride + tap * dilation - pad
            for output in range(outputs) for tap in range(kernel)}
    return len(seen & set(range(size)))
