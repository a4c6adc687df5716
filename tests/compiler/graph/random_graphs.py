"""Random small networks, as hypothesis draws and shrinks them.

    @given(networks(), st.integers(0, 9))
    def test_…(graph, seed):
        inputs = random_inputs(graph, seed)

`networks()` gives quantized networks as the front ends make them: one image, then convolutions
(plain, in groups, depthwise, with strides, dilation and uneven pads), pools, residual sums,
products, clamps, tables, concatenations, padding and moved axes, and at the end perhaps a dense
layer and a softmax. Everything is of one type, int8 or uint8, with zero points, in the order of
axes of ONNX or of TFLite, rounded as either rounds.

Structure is drawn, so that it shrinks; the numbers of constants come from a drawn seed. Scales
follow from the number of products in a sum, so that results use their range and few saturate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any

import numpy as np
from hypothesis import strategies as st

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Rescale,
)
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

MOST_STEPS = 6
SPREAD = 74                 # standard deviation of integers of 8 bits that are equally likely
AIM = 45                    # and what that of a result should be


@dataclass
class Maker:
    """A network while it is being drawn. `images` are tensors with four axes, oldest first."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    dtype: str
    channel_axis: int
    rounding: Rounding
    numbers: np.random.Generator
    builder: Builder = field(default_factory=Builder)
    images: list[str] = field(default_factory=list)

    def between(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def chosen(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def quantization(self) -> Quantization:
        """Of a result: any of a few scales, and a zero point not far from the middle."""
        middle = 128 if self.dtype == "uint8" else 0
        return Quantization((self.chosen(0.05, 0.02, 0.11),), (middle + self.between(-30, 30),))

    def image(self) -> str:
        """One of the tensors so far, more often a late one."""
        return self.images[-1] if self.chosen(True, True, False) else self.chosen(*self.images)

    def shape(self, name: str) -> tuple[int, int, int, int]:
        """Images, rows, columns and channels."""
        n, *sides = self.builder.type_of(name).shape
        channels = sides.pop(self.channel_axis - 1)
        return n, sides[0], sides[1], channels

    def known(self, name: str) -> Quantization:
        return self.builder.type_of(name).require_quantization()

    def add(self, word: str, operation: Any, quantization: Quantization | None = None,
            dtype: str | None = None) -> str:
        name = self.builder.fresh(word)
        return self.builder.add(name, operation, dtype=dtype, quantization=quantization)

    def weights(self, shape: tuple[int, ...], outputs: int, products: int, scale_in: float,
                scale_out: float, axis: int) -> tuple[str, str | None, dict[str, Any]]:
        """Weights, a bias perhaps, and the settings with which sums become results."""
        rng, per_channel = self.numbers, self.chosen(True, False)
        real = AIM / (SPREAD * SPREAD * sqrt(products))
        factors = rng.uniform(0.6, 1.4, outputs if per_channel else 1)
        scales = tuple((real * factors * scale_out / scale_in).tolist())
        low, high = (0, 255) if self.dtype == "uint8" else (-127, 127)
        zeros = tuple(rng.integers(108, 148, len(scales)).tolist()) if low == 0 else (0,)
        array = rng.integers(low, high + 1, shape).astype(self.dtype)
        weights = self.builder.constant("weights", array, Quantization(
            scales, zeros, axis if per_channel else None))
        bias = None
        if self.chosen(True, False):
            most = int(SPREAD * SPREAD * sqrt(products))
            bias = self.builder.constant(
                "bias", rng.integers(-most, most, outputs).astype(np.int32))
        return weights, bias, {"scales": tuple(scale_in * each / scale_out for each in scales),
                               "rounding": self.rounding, **self.bounds()}

    def bounds(self) -> dict[str, int]:
        """What an activation function does to stored numbers, perhaps."""
        if self.chosen(True, True, False):
            return {}
        middle = 128 if self.dtype == "uint8" else 0
        return {"low": middle - self.between(0, 90), "high": middle + self.between(0, 120)}


@st.composite
def networks(draw: Callable[[st.SearchStrategy[Any]], Any], *,
             dtypes: tuple[str, ...] = ("int8", "uint8"), channel_axes: tuple[int, ...] = (1, 3),
             steps: tuple[Callable[[Maker], None], ...] | None = None) -> Graph:
    """A network. `steps` are the functions below that may add to it; all, unless told."""
    maker = Maker(draw, draw(st.sampled_from(dtypes)), draw(st.sampled_from(channel_axes)),
                  draw(st.sampled_from((Rounding.TWICE, Rounding.EVEN, Rounding.AWAY))),
                  np.random.default_rng(draw(st.integers(0, 1 << 16))))
    n, channels = maker.between(1, 2), maker.between(1, 6)
    sides = [maker.between(1, 8), maker.between(1, 8)]
    sides.insert(maker.channel_axis - 1, channels)
    maker.images = [maker.builder.input("image", TensorType((n, *sides), maker.dtype,
                                                            maker.quantization()))]
    for _ in range(maker.between(1, MOST_STEPS)):
        draw(st.sampled_from(steps or STEPS))(maker)
    outputs = {maker.images[-1], maker.image()} - {"image"} or {rescaled(maker)}
    if maker.chosen(True, False):
        outputs = {ending(maker)}
    return maker.builder.graph(tuple(sorted(outputs)))


def random_inputs(graph: Graph, seed: int) -> dict[str, Any]:
    """Inputs of a graph, with extremes more often than chance has them."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, each in graph.inputs.items():
        if each.is_float:
            found[name] = rng.normal(0, 2, each.shape).astype(each.dtype)
            continue
        low, high = each.range if each.is_integer else (0, 1)
        array = rng.integers(low, high, each.shape, endpoint=True)
        extreme = rng.choice([low, high], each.shape)
        found[name] = np.where(rng.random(each.shape) < 0.1, extreme, array).astype(each.dtype)
    return found


def convolution(maker: Maker) -> None:
    """A convolution: plain, in groups or depthwise."""
    x = maker.image()
    _, height, width, channels = maker.shape(x)
    groups = maker.chosen(*[each for each in range(1, channels + 1) if channels % each == 0])
    outputs = groups * maker.between(1, 4 if groups < 3 else 2)
    pad = tuple(maker.between(0, 2) for _ in range(4)) if maker.chosen(True, False) else (0,) * 4
    dilation = maker.chosen((1, 1), (1, 1), (2, 1))
    kernel = tuple(maker.between(1, max(1, min(3, (size - 1) // each + 1))) for size, each in zip(
        (height + pad[0] + pad[1], width + pad[2] + pad[3]), dilation, strict=True))
    depth = channels // groups
    result = maker.quantization()
    weights, bias, settings = maker.weights((outputs, depth, *kernel), outputs,
                                            depth * prod(kernel), maker.known(x).scale,
                                            result.scale, 0)
    maker.images.append(maker.add("conv", Conv(
        x=x, weights=weights, bias=bias, groups=groups, pad=pad, dilation=dilation,
        stride=maker.chosen((1, 1), (2, 2), (1, 2)), channel_axis=maker.channel_axis, **settings),
        result, maker.dtype))


def pool(maker: Maker) -> None:
    """A maximum or an average, with the scale of its input or another."""
    x = maker.image()
    _, height, width, _ = maker.shape(x)
    kernel = (maker.between(1, min(height, 3)), maker.between(1, min(width, 3)))
    pad = tuple(maker.between(0, kernel[side // 2] - 1) for side in range(4))
    kind, known, scales = maker.chosen(*PoolKind), maker.known(x), ()
    if kind == PoolKind.AVERAGE and maker.chosen(True, False):
        result = maker.quantization()
        known, scales = result, (known.scale / result.scale,)
    maker.images.append(maker.add("pool", Pool(
        x=x, kind=kind, kernel=kernel, pad=pad, stride=maker.chosen((1, 1), (2, 2)), scales=scales,
        channel_axis=maker.channel_axis, raw=not scales and maker.chosen(True, False),
        count_include_pad=kind == PoolKind.AVERAGE and maker.chosen(True, False),
        rounding=maker.chosen(Rounding.EVEN, Rounding.AWAY), **maker.bounds()), known))


def residual(maker: Maker) -> None:
    """A sum, a difference or a product of two tensors of the same shape."""
    x = maker.image()
    shape = maker.builder.type_of(x).shape
    other = maker.chosen(*[each for each in maker.images
                           if maker.builder.type_of(each).shape == shape])
    kind = maker.chosen(BinaryKind.ADD, BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
    result, scales = maker.quantization(), ()
    if kind == BinaryKind.MUL:
        scales = (maker.known(x).scale * maker.known(other).scale / result.scale,)
    maker.images.append(maker.add("sum", Binary(
        kind=kind, left=x, right=other, scales=scales, rounding=maker.rounding,
        **maker.bounds()), result))


def clamp(maker: Maker) -> None:
    """An activation function of its own."""
    x = maker.image()
    maker.images.append(maker.add("clamp", Clamp(x=x, **maker.bounds()), maker.known(x)))


def lookup(maker: Maker) -> None:
    """Any function, as a table."""
    x = maker.image()
    result = maker.quantization()
    low, high = maker.builder.type_of(x).range
    table = maker.builder.constant("table", maker.numbers.integers(
        low, high, 256, endpoint=True).astype(maker.dtype), result)
    maker.images.append(maker.add("table_of", Lookup(x=x, table=table), result))


def rescaled(maker: Maker) -> str:
    """Another scale and zero point."""
    maker.images.append(maker.add("rescaled", Rescale(
        x=maker.image(), rounding=maker.rounding, **maker.bounds()), maker.quantization(),
        maker.dtype))
    return maker.images[-1]


def rescale(maker: Maker) -> None:
    rescaled(maker)


def concatenation(maker: Maker) -> None:
    """A tensor and a clamp of itself, along the channels."""
    x = maker.image()
    other = maker.add("part", Clamp(x=x, **maker.bounds()), maker.known(x))
    maker.images.append(maker.add("joined", Concat(
        parts=(x, other), axis=maker.channel_axis), maker.known(x)))


def border(maker: Maker) -> None:
    """A border of the zero point, or of another number."""
    x = maker.image()
    before, after = ([0] * 4, [0] * 4)
    for axis in {1, 2, 3} - {maker.channel_axis}:
        before[axis], after[axis] = maker.between(0, 1), maker.between(0, 1)
    zero = maker.known(x).zero_point
    maker.images.append(maker.add("border", Pad(
        x=x, before=tuple(before), after=tuple(after), value=maker.chosen(zero, zero, 5)),
        maker.known(x)))


def cut(maker: Maker) -> None:
    """Part of an image, or all of it."""
    x = maker.image()
    shape = maker.builder.type_of(x).shape
    starts = tuple(0 if axis == 0 else maker.between(0, min(1, size - 1))
                   for axis, size in enumerate(shape))
    maker.images.append(maker.add("cut", Slice(x=x, starts=starts, stops=shape, steps=(1,) * 4),
                                  maker.known(x)))


def move(maker: Maker) -> None:
    """Axes in another order and back, perhaps with something in between."""
    x = maker.image()
    known = maker.known(x)
    there = maker.chosen((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2))
    back = tuple(there.index(axis) for axis in range(4))
    first = maker.add("moved", Transpose(x=x, order=there), known)
    if maker.chosen(True, False):
        first = maker.add("clamp", Clamp(x=first, **maker.bounds()), known)
    maker.images.append(maker.add("back", Transpose(x=first, order=back), known))


def reshape(maker: Maker) -> None:
    """Another shape and back."""
    x = maker.image()
    shape, known = maker.builder.type_of(x).shape, maker.known(x)
    flat = maker.add("flat", Reshape(x=x, shape=(shape[0], prod(shape[1:]))), known)
    maker.images.append(maker.add("shaped", Reshape(x=flat, shape=shape), known))


def ending(maker: Maker) -> str:
    """Flattened, then perhaps a dense layer, and perhaps real numbers, and a softmax of those."""
    x = maker.images[-1]
    shape, known = maker.builder.type_of(x).shape, maker.known(x)
    depth = prod(shape[1:])
    found = maker.add("flat", Reshape(x=x, shape=(shape[0], depth)), known)
    if maker.chosen(True, False):
        outputs, result = maker.between(1, 7), maker.quantization()
        weights, bias, settings = maker.weights((depth, outputs), outputs, depth, known.scale,
                                                result.scale, 1)
        found = maker.add("dense", MatMul(left=found, right=weights, bias=bias, **settings),
                          result, maker.dtype)
    if maker.chosen(True, False):
        found = maker.add("real", Dequantize(x=found))
        if maker.chosen(True, False):
            found = maker.add("softmax", Softmax(x=found))
    return found


STEPS = (convolution, convolution, pool, residual, clamp, lookup, rescale, concatenation, border,
         cut, move, reshape)
