"""The fewest tile products that a convolution in groups takes, whatever lies in tiles.

A tile of sums holds `block_out` results of any pixels and groups, and each product gives them
`block_in` numbers of the input. So a tile takes as many products as the inputs that its results
see, together, fill tiles: sums of one lane cannot be told apart later, so none goes by way of
another tile. Results of several pixels of a group share some inputs, those of different groups
none:

    16 results of one pixel, 24 channels in a group         216 inputs      13.5 products
    8 of each of two neighbours                             288             18

What a pixel has in a group is cut into parts, each with a share of its tile's products. The least
sum of shares over all cuts is a bound: 13.5 + 9 products for 24 channels, 20.25 if only products of
numbers counted. Borders count as inputs, as they do in other bounds.
"""

from __future__ import annotations

from functools import lru_cache

from ....isa.config import Config
from ....isa.instructions import WINDOW_TAPS
from ..convolution.conv2d import Conv2d
from ..form import blocks_of

REMEMBERED = 64


def least_products(spec: Conv2d, groups: int, config: Config) -> int:
    """Tile products of all images: those of numbers, or what tiles of results take if more. A
    depthwise product sees one input of each result: it is no better for inputs that enough results
    see."""
    macs = blocks_of(spec.macs, config.macs_per_cycle)
    inputs, outputs = spec.channels_in // groups, spec.channels_out // groups
    taps = WINDOW_TAPS if config.has_windows else 1
    if outputs * config.block_in < config.depthwise_lanes * taps:
        return macs
    steps = tuple(1 if dilation > 1 else min(stride, taps) for stride, taps, dilation in zip(
        spec.stride, spec.kernel, spec.dilation, strict=True))
    seen = least_inputs(inputs, outputs, spec.kernel, steps, config.block_out)
    rows = blocks_of(spec.images, config.batch) * spec.out_height * spec.out_width * groups
    return max(macs, int(rows * seen / config.block_in))


@lru_cache(REMEMBERED)
def least_inputs(inputs: int, outputs: int, kernel: tuple[int, ...], steps: tuple[int, ...],
                 lanes: int) -> float:
    """The least sum of shares for one pixel of a group: of the inputs that tiles see."""
    def seen(count: int) -> int:
        return inputs * least_pixels(blocks_of(count, outputs), kernel, steps)

    fewest = [0]                # inputs that so many results see, of any groups
    for count in range(1, lanes + 1):
        fewest.append(min(seen(each) + fewest[count - each] for each in range(1, count + 1)))
    shares = [0.0]              # of parts of so many results
    for part in range(1, min(outputs, lanes) + 1):
        shares.append(part * min(
            (inputs * least_pixels(1 + blocks_of(more, outputs), kernel, steps)
             + fewest[others]) / (part + more + others)
            for more in range(lanes - part + 1) for others in range(lanes - part - more + 1)))
    least = [0.0]
    for count in range(1, outputs + 1):
        least.append(min(shares[part] + least[count - part]
                         for part in range(1, min(count, len(shares) - 1) + 1)))
    return least[outputs]


def least_pixels(windows: int, kernel: tuple[int, ...], steps: tuple[int, ...]) -> int:
    """No fewer pixels are seen by so many windows. In each of `columns`, windows one below the
    other see `kernel` rows, and at least a step more for each; in each of these rows, columns add
    up in the same way."""
    (height, width), (down, across) = kernel, steps
    return min(
        across * (down * windows + columns * (height - down))
        + (width - across) * ((blocks_of(windows, columns) - 1) * down + height)
        for columns in range(1, windows + 1))
