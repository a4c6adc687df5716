"""Bounds of operators, against figures worked out by hand."""

from dataclasses import replace

import pytest

from microtron.compiler.operators.conv2d import Conv2d
from microtron.compiler.operators.roofline import Bound, bound, convolution_bytes, used
from microtron.isa.config import base, wide
from microtron.isa.timing import MemoryTiming

LAYER = Conv2d(height=56, width=56, channels_in=64, channels_out=64, pad=(1, 1, 1, 1))


def test_the_bound_is_the_larger_of_products_and_bytes():
    assert Bound(macs=10, memory=3).cycles == 10
    assert Bound(macs=10, memory=3).limit == "macs"
    assert Bound(macs=10, memory=30).cycles == 30
    assert Bound(macs=10, memory=30).limit == "memory"


def test_a_layer_of_resnet_18():
    assert convolution_bytes(LAYER) == 56 * 56 * 64 + 64 * 64 * 9 + 56 * 56 * 64
    found = bound(LAYER.macs, convolution_bytes(LAYER), base, MemoryTiming())
    assert found == Bound(macs=451_584, memory=438_272 / 8)


@pytest.mark.parametrize(("config", "memory", "cycles"), [
    (base, MemoryTiming(), 1000), (wide, MemoryTiming(), 500),
    (replace(base, bus_bits=256), MemoryTiming(), 250),
    (base, MemoryTiming(cycles_per_beat=3), 3000),
    (base, MemoryTiming(read_latency=128), 1000),       # latency can be hidden
])
def test_bytes_take_their_time_on_the_bus(config, memory, cycles):
    assert bound(0, 8000, config, memory).memory == cycles


@pytest.mark.parametrize(("size", "outputs", "kernel", "stride", "dilation", "pad", "seen"), [
    (56, 56, 3, 1, 1, 1, 56),
    (56, 28, 1, 2, 1, 0, 28),       # every other row
    (57, 19, 1, 3, 1, 0, 19),
    (10, 3, 2, 4, 1, 0, 6),
    (7, 3, 3, 1, 2, 0, 7),
    (8, 2, 2, 4, 3, 0, 4),          # 0, 3, 4, 7
    (3, 9, 1, 1, 1, 3, 3),          # mostly border
    (1, 1, 3, 1, 1, 1, 1),
])
def test_pixels_that_no_output_sees_do_not_count(size, outputs, kernel, stride, dilation, pad,
                                                 seen):
    assert used(size, outputs, kernel, stride, dilation, pad) == seen
