"""What random nodes leave out: quotients of any integers, samples at no place, places of maxima."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import helper

from microtron.runtime.models.onnx_backend import MicrotronBackend

from .nodes import INTEGERS, Draw


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_of_integers_are_exact_and_wrap(dtype):
    draw, limits = Draw(0), np.iinfo(dtype)
    left, right = draw.whole((60,), dtype), draw.whole((60,), dtype)
    left[:4], right[:4] = limits.min, (limits.max, 1, limits.min, -1 if limits.min else 1)
    right[right == 0] = 3
    exact = [int(a) // int(b) if (a < 0) == (b < 0) else -(abs(int(a)) // abs(int(b)))
             for a, b in zip(left, right, strict=True)]
    node = helper.make_node("Div", ["a", "b"], ["c"])
    found = MicrotronBackend.run_node(node, [left, right]).c
    bits = limits.bits                          # the least integer by −1 wraps
    assert [int(each) % (1 << bits) for each in found] == [each % (1 << bits) for each in exact]


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_a_sample_at_no_number_or_infinitely_far_is_outside(mode, outside):
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    grid = np.array([[np.nan, 0], [-np.inf, 0], [np.inf, 0]], np.float32).reshape(1, 1, 3, 2)
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=outside)
    found = MicrotronBackend.run_node(node, [x, grid]).y.ravel().tolist()
    assert found == {"zeros": [0, 0, 0], "border": [4, 4, 6]}.get(outside, found)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("seed", range(8))
def test_places_of_maxima(seed):
    """They are where a maximum is; of equal numbers, the first."""
    draw = Draw(seed)
    n, channels, height, width = (draw.number(1, each) for each in (2, 2, 6, 6))
    kernel = [draw.number(1, min(each, 3)) for each in (height, width)]
    pads = [draw.number(0, each - 1) for each in (*kernel, *kernel)]
    strides = [draw.number(1, 3) for _ in range(2)]
    x = np.round(draw.real((n, channels, height, width), odd=False))
    node = helper.make_node("MaxPool", ["x"], ["y", "z"], kernel_shape=kernel, pads=pads,
                            strides=strides)
    found = MicrotronBackend.run_node(node, [x])
    np.testing.assert_array_equal(x.ravel()[found.z], found.y)
    for place in np.ndindex(found.y.shape):
        rows, columns = ([each for each in range(start, start + taps) if 0 <= each < size]
                         for start, taps, size in (
                             (place[2] * strides[0] - pads[0], kernel[0], height),
                             (place[3] * strides[1] - pads[1], kernel[1], width)))
        window = x[place[0], place[1]][np.ix_(rows, columns)]
        first = np.unravel_index(window.argmax(), window.shape)
        inside = rows[first[0]] * width + columns[first[1]]
        assert found.z[place] == (place[0] * channels + place[1]) * height * width + inside


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "GlobalMaxPool"])
def test_a_window_with_what_is_no_number_has_none(op):
    x = np.array([[[[1, np.nan], [-np.inf, 2]]]], np.float32)
    settings = {} if op.startswith("Global") else {"kernel_shape": [2, 2]}
    assert np.isnan(MicrotronBackend.run_node(helper.make_node(op, ["x"], ["y"], **settings), [x]))
