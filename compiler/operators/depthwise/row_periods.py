"""After how many pixels of a row, packed without gaps, tiles begin where pixels do; and which tiles
of data the tiles of results in between see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, lcm

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ..convolution.conv2d import Conv2d
from ..convolution.patches import groups_of
from ..form import blocks_of

MOST_TILES = 16             # of results in a period


@dataclass(frozen=True)
class Part:
    """Neighbouring tiles of results in a period that see the same tiles of data."""

    first: int              # tile of results
    count: int
    start: int              # first tile of data, from the beginning of the period
    width: int              # tiles of data


@dataclass(frozen=True)
class Period:
    """Pixels of a row after which tiles of results begin where pixels do, as tiles of data do."""

    pixels: int
    shift: int              # lanes before the first pixel of a row of data
    data_tiles: int
    result_tiles: int
    parts: tuple[Part, ...]

    @property
    def products(self) -> int:
        """Tile products in each row of the kernel."""
        return sum(each.count * each.width for each in self.parts)

    @property
    def reach(self) -> int:
        """Tiles of data that it sees."""
        return max(each.start + each.width for each in self.parts)


def depths(spec: Conv2d) -> tuple[int, int]:
    """Channels of a group: of the data, and of results."""
    return spec.channels_in // groups_of(spec), spec.channels_out // groups_of(spec)


def period_of(spec: Conv2d, config: Config) -> Period | None:
    """The shortest period, with the shift that takes the fewest products; None if it is long."""
    inputs, outputs = depths(spec)
    pixels = lcm(config.block_out // gcd(outputs, config.block_out),
                 config.block_in // gcd(inputs * spec.stride[1], config.block_in))
    count = pixels * outputs // config.block_out
    if count > MOST_TILES:
        return None
    step = gcd(inputs, config.block_in)
    periods = (Period(pixels, shift, pixels * spec.stride[1] * inputs // config.block_in, count,
                      tuple(_parts(spec, config, count, shift)))
               for shift in range(0, config.block_in, step))
    return min(periods, key=lambda each: (each.products, each.shift))


def _parts(spec: Conv2d, config: Config, count: int, shift: int) -> Iterator[Part]:
    inputs, outputs = depths(spec)
    found: Part | None = None
    for tile in range(count):
        first, last = (lane // outputs for lane in (
            tile * config.block_out, (tile + 1) * config.block_out - 1))
        start = (first * spec.stride[1] * inputs + shift) // config.block_in
        end = blocks_of((last * spec.stride[1] + spec.reach(1)) * inputs + shift, config.block_in)
        if found is not None and (found.start, found.width) == (start, end - start):
            found = replace(found, count=found.count + 1)
            continue
        if found is not None:
            yield found
        found = Part(tile, 1, start, end - start)
    assert found is not None, "a period has tiles"
    yield found
