"""The fewest tile products of a convolution in groups, against tiles filled at random."""

import random
from dataclasses import replace

import pytest

from microtron.compiler.operators.depthwise.group_products import (
    least_inputs,
    least_pixels,
    least_products,
)
from microtron.compiler.operators.depthwise.grouped import Grouped, tile_products
from microtron.isa.config import base, small

SIZE = 6        # rows and columns of results: their input has a border of its own


def window(place, kernel, stride, dilation):
    return {tuple(at * step + tap * apart for at, step, tap, apart in zip(
        place, stride, (ky, kx), dilation, strict=True))
        for ky in range(kernel[0]) for kx in range(kernel[1])}


def random_windows(seed):
    rng = random.Random(seed)
    kernel, stride = ((rng.randint(1, 4), rng.randint(1, 4)) for _ in range(2))
    dilation = (rng.randint(1, 3), rng.randint(1, 3)) if seed % 3 == 0 else (1, 1)
    steps = tuple(1 if apart > 1 else min(step, taps) for step, taps, apart in zip(
        stride, kernel, dilation, strict=True))
    return rng, kernel, stride, dilation, steps


@pytest.mark.parametrize("seed", range(60))
def test_no_windows_see_fewer_pixels(seed):
    rng, kernel, stride, dilation, steps = random_windows(seed)
    near = [(y, x) for y in range(3) for x in range(4)]
    for count in range(1, len(near) + 1):
        places = rng.sample(near, count)
        seen = set().union(*(window(place, kernel, stride, dilation) for place in places))
        assert least_pixels(count, kernel, steps) <= len(seen)


@pytest.mark.parametrize(("windows", "pixels"), [(1, 9), (2, 12), (3, 15), (4, 16), (8, 24)])
def test_windows_that_lie_in_a_rectangle_see_just_as_many(windows, pixels):
    assert least_pixels(windows, (3, 3), (1, 1)) == pixels


@pytest.mark.parametrize("seed", range(30))
def test_no_way_to_fill_tiles_takes_fewer_products(seed):
    """Results in tiles at random, by runs of channels of some pixels of some groups."""
    rng, kernel, stride, dilation, steps = random_windows(seed)
    inputs, outputs, lanes = rng.randint(1, 5), rng.randint(1, 12), rng.choice((4, 8))
    left = {(group, y, x): outputs for group in range(2) for y in range(SIZE) for x in range(SIZE)}
    seen = 0
    while left:
        room, tile = lanes, {}
        while room and left:
            near = [key for key in left if key[0] in tile] if rng.random() < 0.7 else []
            key = rng.choice(sorted(near or left))
            part = min(room, left[key], rng.randint(1, lanes))
            room, left[key] = room - part, left[key] - part
            left = {each: count for each, count in left.items() if count}
            tile.setdefault(key[0], set()).update(window(key[1:], kernel, stride, dilation))
        seen += sum(inputs * len(pixels) for pixels in tile.values())
    least = least_inputs(inputs, outputs, kernel, steps, lanes)
    assert 2 * SIZE * SIZE * least <= seen


@pytest.mark.parametrize(("channels", "products"), [(4, 4 / 4), (8, 3), (16, 9), (24, 22.5),
                                                    (40, 60)])
def test_products_of_a_pixel_of_a_group(channels, products):
    """4 channels: 2 × 2 results see 16 pixels. 8: two see 12. 24: 16 of one pixel, and 8 of each of
    two."""
    spec = Grouped(height=8, width=8, channels_in=4 * channels, channels_out=4 * channels,
                   groups=4, pad=1)
    assert least_products(spec, 4, base) == 64 * 4 * products


def test_a_depthwise_product_may_be_better_for_few_channels():
    spec = Grouped(height=8, width=8, channels_in=64, channels_out=64, groups=32, pad=1)
    windows = replace(base, window_taps=3)
    assert least_products(spec, 32, windows) == -(-spec.macs // 256)
    assert least_products(spec, 32, replace(base, window_taps=1)) > -(-spec.macs // 256)


@pytest.mark.parametrize("config", [base, small, replace(base, block_in=4, block_out=64)])
@pytest.mark.parametrize("channels", [2, 4, 6, 8, 12, 16, 24])
def test_forms_take_as_many_or_more(channels, config):
    spec = Grouped(height=5, width=7, channels_in=6 * channels, channels_out=6 * channels,
                   groups=6, pad=1)
    own = min(35 * 9 * tile_products(spec, config, each) for each in range(1, 7))
    assert -(-spec.macs // config.macs_per_cycle) <= least_products(spec, 6, config) <= own
