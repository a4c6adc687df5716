"""Grouped convolution: channels in groups, each a convolution of its own.

Groups narrower than a block waste lanes, so several may be merged into one convolution whose
weights are block-diagonal:

    4 groups of 4 → 4 channels    merged by 4, on blocks of 16    one group of 16 → 16 channels

Merging by 1 is one convolution after the other, merging by all is a dense convolution with zeros.
Tensors are packed as for `conv2d`, with a dimension for merged groups before the channel blocks.
Where merged groups fill whole blocks, this is the layout of a plain convolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ..errors import CompileError
from ..expression import Call, Function, both, select, total
from ..intrinsic import requantize_function
from ..nest import Scope
from ..schedule import Schedule
from ..tensor import Tensor, compute, placeholder, reduce_axis
from .conv2d import LATENCY, OVERHEAD, TRAFFIC, Conv2d, blocks_of
from .divisions import even_sizes

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


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: merged groups, output blocks, rows and columns, input blocks,
    and taps of the kernel."""

    groups: int
    blocks: int
    rows: int
    columns: int
    depth: int
    taps: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """The tensors of a grouped convolution on one configuration."""

    spec: Grouped
    config: Config
    function: Function
    data: Tensor
    padded: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    output: Tensor


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
    return Expressions(spec=spec, config=config, function=function, data=data, padded=padded,
                       weights=weights, parameters=parameters, sums=sums, output=output)


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: that of `conv2d`, group after group."""
    plan = Schedule(what.output)
    inside = plan.cache_write(what.output, Scope.OUT)
    parameters = plan.cache_read(what.parameters, Scope.ACC, inside)
    weights = plan.cache_read(what.weights, Scope.WGT, what.sums)
    sums, inside, output = (plan.renewed(each) for each in (what.sums, inside, what.output))
    plan[what.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, g, o, y, x, b, j = last.leaves
    g_far, g_near = last.split(g, knobs.groups)
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(g_far, o_far, n, y_far, x_far, g_near, o_near, y_near, x_near, b, j)
    for stage in (plan[inside], plan[sums]):
        stage.compute_at(last, x_far)
        stage.double_buffer(x_far)
    plan[parameters].compute_at(last, o_far)
    plan[parameters].double_buffer(o_far)
    plan[inside].tensorize(plan[inside].leaves[5], what.function.name)

    stage = plan[sums]
    n, g, o, y, x, b, j, c, ky, kx, k = stage.leaves
    c_far, c_near = stage.split(c, knobs.depth)
    ky_far, ky_near = stage.split(ky, knobs.taps[0])
    kx_far, kx_near = stage.split(kx, knobs.taps[1])
    stage.reorder(c_far, ky_far, kx_far, n, g, o, y, x, c_near, ky_near, kx_near, b, j, k)
    stage.tensorize(b, "gemm")
    plan[what.padded].compute_at(stage, kx_far)
    plan[what.padded].double_buffer(kx_far)
    plan[weights].compute_at(stage, kx_far)
    plan[weights].keep(_kept_weights(what, knobs))
    return plan


def _weight_pieces(what: Expressions, knobs: Knobs) -> int:
    """Pieces in which the weights of the output blocks of a step are loaded."""
    depth, *kernel = what.weights.shape[2:5]
    return (blocks_of(depth, knobs.depth) * blocks_of(kernel[0], knobs.taps[0])
            * blocks_of(kernel[1], knobs.taps[1]))


def _kept_weights(what: Expressions, knobs: Knobs) -> int:
    """All that a step needs and one piece more, or as many pieces as fit."""
    piece = knobs.groups * knobs.blocks * knobs.depth * knobs.taps[0] * knobs.taps[1]
    return min(_weight_pieces(what, knobs) + 1, what.config.tiles(Buffer.WGT) // piece)


def candidates(what: Expressions) -> Iterator[Knobs]:
    """Knobs whose buffers fit, twice each: with all taps at once, or, where the window is too
    large for that, a row or a column of them, or one."""
    height, width = what.spec.kernel
    for taps in dict.fromkeys(((height, width), (1, width), (height, 1), (1, 1))):
        found = list(_with_taps(what, taps))
        if found:
            yield from found
            return


def _with_taps(what: Expressions, taps: tuple[int, int]) -> Iterator[Knobs]:
    spec, config = what.spec, what.config
    groups, outputs, depth = what.weights.shape[:3]
    half = {buffer: config.tiles(buffer) // 2 for buffer in Buffer}
    for group, blocks, deep in product(even_sizes(groups), even_sizes(outputs), even_sizes(depth)):
        if group > 1 and (blocks, deep) != (outputs, depth):
            continue            # several groups at once only where all of each is
        if group * blocks * deep * taps[0] * taps[1] > half[Buffer.WGT]:
            continue
        for columns, rows in product(even_sizes(spec.out_width), even_sizes(spec.out_height)):
            height, width = _window(what, rows, columns, taps)
            vectors = group * blocks * rows * columns
            if (group * deep * height * width <= half[Buffer.INP]
                    and vectors <= half[Buffer.OUT]
                    and vectors + group * blocks * PARAMETER_TILES <= half[Buffer.ACC]):
                yield Knobs(groups=group, blocks=blocks, rows=rows, columns=columns, depth=deep,
                            taps=taps)


def _window(what: Expressions, rows: int, columns: int, taps: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the input that some taps need for some of the output."""
    height, width = (min((count - 1) * stride + (tap - 1) * dilation + 1, size)
                     for count, stride, tap, dilation, size in zip(
                         (rows, columns), what.spec.stride, taps, what.spec.dilation,
                         what.spec.padded, strict=True))
    return height, width


def estimate(what: Expressions, knobs: Knobs) -> float:
    """Cycles, roughly. Steps follow one another at the pace of the slowest engine, loads one step
    ahead; the first loads, and the last requantization and store, overlap with nothing."""
    spec, config = what.spec, what.config
    images, groups, outputs = what.output.shape[:3]
    pieces = _weight_pieces(what, knobs)
    far = [blocks_of(extent, step) for extent, step in (
        (groups, knobs.groups), (outputs, knobs.blocks), (spec.out_height, knobs.rows),
        (spec.out_width, knobs.columns))]
    steps = images * far[0] * far[1] * far[2] * far[3]
    height, width = _window(what, knobs.rows, knobs.columns, knobs.taps)
    vectors = knobs.groups * knobs.blocks * knobs.rows * knobs.columns
    bus, taps = config.bus_bytes, knobs.taps[0] * knobs.taps[1]
    inp = knobs.groups * knobs.depth * height * (width * config.tile_bytes(Buffer.INP) / bus + 1)
    wgt = knobs.groups * knobs.blocks * knobs.depth * taps * config.tile_bytes(Buffer.WGT) / bus
    out = vectors * config.tile_bytes(Buffer.OUT) / bus
    kept = _kept_weights(what, knobs) > pieces
    with_weights = far[0] * far[1] if kept else steps

    def pace(beats: float) -> float:
        return max(vectors * knobs.depth * taps + OVERHEAD, beats + LATENCY,
                   (vectors + LATENCY) / pieces) + TRAFFIC * beats

    beats = inp + out / pieces
    paces = with_weights * pace(beats + wgt) + (steps - with_weights) * pace(beats)
    return pieces * paces + inp + wgt + vectors + out + 4 * LATENCY


def default_knobs(what: Expressions) -> Knobs:
    """The candidate with the best estimate."""
    best = min(candidates(what), key=lambda knobs: estimate(what, knobs), default=None)
    if best is None:
        raise CompileError(f"grouped: no tile of {what.spec} fits in the scratchpads of this "
                           f"configuration")
    return best


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
        what = expressions(spec, config, merged)
        return estimate(what, default_knobs(what)), not is_plain(spec, config, merged)

    return min(merges[:MOST_ESTIMATED], key=cycles)
