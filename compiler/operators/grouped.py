"""Grouped convolution: channels in groups, each a convolution of its own.

Groups narrower than a block waste lanes, so several may be merged into one convolution whose
weights are block-diagonal:

    4 groups of 4 → 4 channels    merged by 4, on blocks of 16    one group of 16 → 16 channels

Merging by 1 is one convolution after the other, merging by all is a dense convolution with zeros.
Tensors are packed as for `conv2d`, with a dimension for merged groups before the channel blocks.
Where merged groups fill whole blocks, this is the layout of a plain convolution. The template is
that of `conv2d` too, group after group.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES
from ..accelerator.intrinsic import requantize_function
from ..errors import CompileError
from ..expression.expression import Call, both, select, total
from ..expression.tensor import compute, placeholder, reduce_axis
from . import conv2d_schedule
from .choice import ranked
from .conv2d import Conv2d, Expressions, blocks_of

MOST_ESTIMATED = 3          # merges whose schedules are looked at


@dataclass(frozen=True, kw_only=True)
class Grouped(Conv2d):
    """What is to be computed. Weights are (channels_out, channels_in / groups, y, x)."""

    groups: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("channels_in", "channels_out"):
            if self.groups < 1 or getattr(self, name) % self.groups:
                raise CompileError(f"grouped: {name} is {getattr(self, name)}, which {self.groups} "
                                   f"groups do not divide")

    @property
    def group_in(self) -> int:
        return self.channels_in // self.groups

    @property
    def group_out(self) -> int:
        return self.channels_out // self.groups

    @property
    def macs(self) -> int:
        return super().macs // self.groups


def expressions(spec: Grouped, config: Config, merged: int) -> Expressions:
    """What is computed, with so many groups merged into one."""
    images, groups = blocks_of(spec.images, config.batch), blocks_of(spec.groups, merged)
    depth, outputs = (blocks_of(merged * spec.group_in, config.block_in),
                      blocks_of(merged * spec.group_out, config.block_out))
    (top, _, left, _), (height, width) = spec.pad, spec.padded
    data = placeholder("data", (images, groups, depth, spec.height, spec.width, config.batch,
                                config.block_in), "int8")
    weights = placeholder("weights", (groups, outputs, depth, *spec.kernel, config.block_out,
                                      config.block_in), "int8")
    parameters = placeholder("parameters", (groups, outputs, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    padded = compute("padded", (*data.shape[:3], height, width, *data.shape[-2:]),
                     lambda n, g, c, y, x, b, i: select(
                         both(top <= y, y < top + spec.height, left <= x, x < left + spec.width),
                         data[n, g, c, y - top, x - left, b, i], spec.zero_point_in))
    c, ky, kx, k = (reduce_axis(name, extent) for name, extent in (
        ("c", depth), ("ky", spec.kernel[0]), ("kx", spec.kernel[1]), ("k", config.block_in)))
    shape = (images, groups, outputs, spec.out_height, spec.out_width, config.batch,
             config.block_out)
    (sy, sx), (dy, dx) = spec.stride, spec.dilation
    sums = compute("sums", shape, lambda n, g, o, y, x, b, j: total(
        padded[n, g, c, y * sy + ky * dy, x * sx + kx * dx, b, k].cast("int32")
        * weights[g, o, c, ky, kx, j, k].cast("int32"), c, ky, kx, k))
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    output = compute("output", shape, lambda n, g, o, y, x, b, j: Call(function, (
        sums[n, g, o, y, x, b, j], *(parameters[g, o, number, b, j]
                                     for number in range(PARAMETER_TILES)))))
    return Expressions(spec=spec, config=config, steps=spec.stride, function=function, data=data,
                       padded=padded, weights=weights, parameters=parameters, sums=sums,
                       output=output)


def is_plain(spec: Grouped, config: Config, merged: int) -> bool:
    """Whether tensors lie in memory as for a plain convolution."""
    return merged >= spec.groups or (merged * spec.group_in % config.block_in == 0
                                     and merged * spec.group_out % config.block_out == 0)


def tile_products(spec: Grouped, config: Config, merged: int) -> int:
    """Tile products for one pixel and tap."""
    return (blocks_of(spec.groups, merged) * blocks_of(merged * spec.group_in, config.block_in)
            * blocks_of(merged * spec.group_out, config.block_out))


def default_merge(spec: Grouped, config: Config) -> int:
    """How many groups to merge: what has the best estimate among those with the fewest products;
    of equals, one that keeps the plain layout."""
    merges = sorted(range(1, spec.groups + 1), key=lambda merged: (
        tile_products(spec, config, merged), not is_plain(spec, config, merged), merged))

    def cycles(merged: int) -> tuple[float, bool]:
        best = ranked(conv2d_schedule, [expressions(spec, config, merged)])[0]
        return best.estimate, not is_plain(spec, config, merged)

    return min(merges[:MOST_ESTIMATED], key=cycles)
