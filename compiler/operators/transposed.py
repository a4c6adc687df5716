"""Transposed convolution, as one ordinary convolution for each phase of its stride.

Output row Y reads input row y through tap ky where Y + top = y × stride + ky × dilation. Rows with
the same Y % stride read through the same taps, so they are an ordinary convolution of the input, of
stride 1, with these taps in reverse:

    stride 2, kernel 4, top 1:    even rows: taps 3, 1      odd rows: taps 2, 0

No product with an inserted zero is computed. The output is packed as (n, block, y, phase y, x,
phase x, batch, lane): rows and columns of all phases in their order, up to a multiple of the
stride.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES
from ..errors import CompileError
from .conv2d import Conv2d, blocks_of
from .epilogue import Epilogue


@dataclass(frozen=True, kw_only=True)
class Transposed(Epilogue):
    """What is to be computed. `pad` is top, bottom, left, right: rows and columns that the result
    lacks. `output_padding` are some that it has at the bottom and the right in addition."""

    height: int
    width: int
    channels_in: int
    channels_out: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (2, 2)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    output_padding: tuple[int, int] = (0, 0)
    images: int = 1
    zero_point_in: int = 0

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels_in", "channels_out", "images"):
            if getattr(self, name) < 1:
                raise CompileError(f"transposed: {name} is {getattr(self, name)}, but must be at "
                                   f"least 1")
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or (
                min(*self.pad, *self.output_padding) < 0):
            raise CompileError("transposed: kernel, stride and dilation must be at least 1, pad "
                               "and output_padding at least 0")
        if min(self.out_size) < 1:
            raise CompileError(f"transposed: pad is {self.pad}, which leaves nothing of the output")

    @property
    def out_size(self) -> tuple[int, int]:
        top, bottom, left, right = self.pad
        height, width = ((size - 1) * stride + (kernel - 1) * dilation + 1 - cut + more
                         for size, stride, kernel, dilation, cut, more in zip(
                             (self.height, self.width), self.stride, self.kernel, self.dilation,
                             (top + bottom, left + right), self.output_padding, strict=True))
        return height, width

    @property
    def macs(self) -> int:
        """Products of inputs and taps, with those that fall into the cut border."""
        return (self.images * self.height * self.width * self.channels_in * self.channels_out
                * self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, kw_only=True)
class PhaseConv2d(Conv2d):
    """The convolution of a phase. Its border may be negative: input that is not read."""

    def __post_init__(self) -> None:
        assert min(self.out_height, self.out_width) >= 1, "phases are made to fit"


@dataclass(frozen=True)
class Phase:
    """Output rows, or columns, at the same place of the stride."""

    number: int
    taps: tuple[int, ...]       # of the kernel, in the order of the rows that they read
    offset: int                 # of the row that output row 0 of the phase reads first
    dilation: int
    outputs: int                # rows of the phase


@dataclass(frozen=True)
class PhasePair:
    """A phase along y and one along x, and the convolution that they are."""

    y: Phase
    x: Phase
    spec: PhaseConv2d


def phases_along(spec: Transposed, axis: int) -> list[Phase]:
    """The phases of one axis that the output has."""
    stride, dilation, size = spec.stride[axis], spec.dilation[axis], spec.out_size[axis]
    outputs = blocks_of(size, stride)
    return [_phase(spec, axis, number, outputs, dilation)
            for number in range(min(stride, size))]


def _phase(spec: Transposed, axis: int, number: int, outputs: int, dilation: int) -> Phase:
    stride, before = spec.stride[axis], spec.pad[2 * axis]
    inside = (spec.height, spec.width)[axis]
    offsets = {tap: (number + before - tap * dilation) // stride
               for tap in reversed(range(spec.kernel[axis]))
               if (number + before - tap * dilation) % stride == 0}
    taps = list(offsets)
    # Where even the last output row reads above the input, or the first below it, nothing is read.
    if not taps or offsets[taps[0]] >= inside or offsets[taps[-1]] + outputs <= 0:
        return Phase(number, (), 0, 1, outputs)
    step = offsets[taps[1]] - offsets[taps[0]] if len(taps) > 1 else 1
    return Phase(number, tuple(taps), offsets[taps[0]], step, outputs)


def phases(spec: Transposed) -> list[PhasePair]:
    """All phases, with the convolution that each is. One that no tap reaches has one tap with
    weights of zero."""
    return [PhasePair(y, x, _convolution(spec, y, x))
            for y, x in product(phases_along(spec, 0), phases_along(spec, 1))]


def _convolution(spec: Transposed, y: Phase, x: Phase) -> PhaseConv2d:
    pad: list[int] = []
    for phase, inside in ((y, spec.height), (x, spec.width)):
        reach = (max(len(phase.taps), 1) - 1) * phase.dilation + 1
        pad += [-phase.offset, phase.outputs - 1 + reach - inside + phase.offset]
    top, bottom, left, right = pad
    return PhaseConv2d(
        height=spec.height, width=spec.width, channels_in=spec.channels_in,
        channels_out=spec.channels_out, kernel=(max(len(y.taps), 1), max(len(x.taps), 1)),
        dilation=(y.dilation, x.dilation), pad=(top, bottom, left, right), images=spec.images,
        zero_point_in=spec.zero_point_in, zero_point_out=spec.zero_point_out, low=spec.low,
        high=spec.high, rounding=spec.rounding)


@dataclass(frozen=True)
class Shapes:
    """Of the packed tensors. Weights are (phase, output block, input block, y, x, output lane,
    input lane), where phases with fewer taps than others leave some unused."""

    data: tuple[int, ...]
    weights: tuple[int, ...]
    parameters: tuple[int, ...]
    output: tuple[int, ...]


def shapes(spec: Transposed, config: Config) -> Shapes:
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    every = phases(spec)
    taps = [max(each.spec.kernel[axis] for each in every) for axis in range(2)]
    (height, width), (sy, sx) = spec.out_size, spec.stride
    return Shapes(
        data=(images, depth, spec.height, spec.width, config.batch, config.block_in),
        weights=(len(every), outputs, depth, *taps, config.block_out, config.block_in),
        parameters=(len(every), outputs, PARAMETER_TILES, config.batch, config.block_out),
        output=(images, outputs, blocks_of(height, sy), sy, blocks_of(width, sx), sx,
                config.batch, config.block_out))
