"""Matrix products and convolutions, of real numbers and of integers to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from microtron.compiler.graph.operations.layers.window_places import MaxPlace
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.isa.instructions import Rounding

from .draws import FLOATS, quantized, repeated, seeds, shapes, value
from .lowered import check, typed

kinds = st.sampled_from(["float32", "float64", "float16", "plain", "int8", "uint8"])
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
roundings = st.sampled_from(list(Rounding))
RESULT = Quantization((0.5,), (3,))


def operand(shape, kind, seed, axis=None):
    """Real numbers, plain integers, or quantized ones, with a zero point for each index of an
    axis if there is one."""
    rng = np.random.default_rng(seed)
    if kind in FLOATS:
        return value(shape, kind, seed, special=False)
    if kind == "plain":
        return value(shape, "int8", seed)
    found = quantized(shape, kind, seed)
    if axis is None or rng.random() < 0.5 or not shape[axis]:
        return found
    zeros = rng.integers(0, 5, shape[axis]) * int(rng.integers(0, 2))
    known = Quantization((0.5,) * shape[axis], tuple(map(int, zeros)), axis)
    return Value(replace(found.type, quantization=known), found.array)


def settings(kind, channels, seed, rounding):
    """Scales and bounds of a result, and its type without a shape."""
    rng = np.random.default_rng(seed)
    if kind in FLOATS:
        low = float(rng.normal() - 2) if rng.random() < 0.5 else None
        return {"low": low}, kind, None
    if kind == "plain":
        return {}, "int32", None
    count = channels if rng.random() < 0.5 and channels else 1
    scales = tuple(map(float, np.exp(rng.uniform(-9, 3, count))))
    dtype = rng.choice([kind, "int16", "int32"])
    return {"scales": scales, "rounding": rounding, "low": -100.0}, str(dtype), RESULT


def add_bias(kind, channels, seed):
    rng = np.random.default_rng(seed + 5)
    if rng.random() < 0.4:
        return ()
    dtype = kind if kind in FLOATS else "int32"
    return (typed(rng.normal(size=channels).astype(dtype) if kind in FLOATS
                  else rng.integers(-1000, 1000, channels).astype(dtype)),)


@given(shapes(2, 4, 0, 3), st.integers(0, 5), kinds, seeds, roundings)
def test_matrix_products(shape, depth, kind, seed, rounding):
    rng = np.random.default_rng(seed)
    batch, (rows, columns) = shape[:-2], shape[-2:]
    left = operand((*repeated(batch, seed), rows, depth), kind, seed)
    right = operand((*(() if rng.random() < 0.5 else batch), depth, columns), kind, seed + 1, -1)
    given_settings, dtype, known = settings(kind, columns, seed, rounding)
    bias = add_bias(kind, columns, seed)
    operation = MatMul(left="l", right="r", bias="b" if bias else None, **given_settings)
    result = TensorType(operation.infer(left.type, right.type).shape, dtype, known)
    check(operation, left, right, *bias, result=result, constant=(1,) if seed % 2 else (),
          relative=2e-5)


windows = st.fixed_dictionaries({
    "stride": pairs, "dilation": pairs, "pad": st.tuples(*[st.integers(0, 2)] * 4),
    "channel_axis": st.sampled_from([1, 3])})


def image(n, sides, channels, channel_axis):
    return (n, channels, *sides) if channel_axis == 1 else (n, *sides, channels)


@example(1, (1, 1), (1, 1), 1, 1, 1, {
    "stride": (1, 1), "dilation": (1, 1), "pad": (1, 0, 0, 0), "channel_axis": 1}, "float32", 1,
    Rounding.TWICE, True)               # all of the image is cut off
@example(1, (1, 1), (1, 1), 1, 1, 1, {
    "stride": (1, 1), "dilation": (1, 1), "pad": (0, 0, 1, 0), "channel_axis": 1}, "float32", 2,
    Rounding.TWICE, True)               # with weights that may be infinite
@given(st.integers(0, 2), st.tuples(st.integers(1, 7), st.integers(1, 7)), pairs,
       st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), windows, kinds, seeds, roundings,
       st.booleans())
def test_convolutions(n, sides, kernel, groups, depth, outputs, window, kind, seed, rounding,
                      transposed):
    x = operand(image(n, sides, depth * groups, window["channel_axis"]), kind, seed)
    weights = operand((outputs * groups, depth, *kernel), kind, seed + 1, 0)
    given_settings, dtype, known = settings(kind, outputs * groups, seed, rounding)
    bias = add_bias(kind, outputs * groups, seed)
    operation = (TransposedConv if transposed else Conv)(
        x="x", weights="w", bias="b" if bias else None, groups=groups, **window,
        **({"output_padding": (seed % 2, seed // 2 % 2)} if transposed else {}), **given_settings)
    try:
        inferred = operation.infer(x.type, weights.type)
    except GraphError:          # the window is larger than the image
        return
    check(operation, x, weights, *bias, result=TensorType(inferred.shape, dtype, known),
          constant=(1,) if seed % 2 else (), relative=2e-5)


@given(st.integers(0, 2), st.tuples(st.integers(1, 7), st.integers(1, 7)), pairs,
       st.integers(1, 3), windows,
       st.sampled_from([*FLOATS, "int8", "uint8", "int16"]), seeds, roundings, st.booleans())
def test_pools(n, sides, kernel, channels, window, dtype, seed, rounding, scaled):
    rng = np.random.default_rng(seed)
    shape = image(n, sides, channels, window["channel_axis"])
    x = value(shape, dtype, seed) if dtype in FLOATS or not scaled else quantized(
        shape, dtype, seed, scale=0.25)
    kind = PoolKind.AVERAGE if rng.random() < 0.6 else PoolKind.MAX
    average = kind == PoolKind.AVERAGE
    scales = (float(rng.choice([1.0, 0.37])),) if average and x.type.is_quantized else ()
    operation = Pool(x="x", kind=kind, kernel=kernel, **window, rounding=rounding,
                     count_include_pad=bool(rng.integers(2)), scales=scales,
                     raw=average and not scales and bool(rng.integers(2)),
                     low=-3.0 if rng.random() < 0.3 else None)
    try:
        result = operation.infer(x.type)
        operation.check(result, x.type)
    except GraphError:
        return
    check(operation, x, result=result, relative=2e-5)


@example(1, (1, 1), (2, 1), 1, {"stride": (1, 1), "dilation": (2, 1), "pad": (1, 1, 0, 0),
                                "channel_axis": 1}, "float16", 0, False)    # around the image
@given(st.integers(0, 2), st.tuples(st.integers(1, 7), st.integers(1, 7)), pairs,
       st.integers(1, 3), windows, st.sampled_from([*FLOATS, "int8", "uint8", "int64"]), seeds,
       st.booleans())
def test_places_of_the_largest(n, sides, kernel, channels, window, dtype, seed, by_column):
    x = value(image(n, sides, channels, window["channel_axis"]), dtype, seed)
    operation = MaxPlace(x="x", kernel=kernel, by_column=by_column, **window)
    try:
        operation.check(operation.infer(x.type), x.type)
    except GraphError:
        return
    check(operation, x)
