"""Operations on many numbers: reductions, softmax, norms, resizes, and TFLite's in fixed point."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from microtron.compiler.graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from microtron.compiler.graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from microtron.compiler.graph.operations.tflite.eight_bit import (
    RESIZES,
    FixedPointPrelu,
    FixedPointReduce,
    FixedPointResize,
    FixedPointSquaredDifference,
)
from microtron.compiler.graph.operations.tflite.fixed_point import FixedPointSoftmax
from microtron.compiler.graph.operations.vision.integer_upsample import Upsample
from microtron.compiler.graph.operations.vision.resize import (
    Coordinates,
    Nearest,
    Resize,
    ResizeKind,
)
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.isa.instructions import Rounding

from .draws import ALL, FLOATS, numbers, quantized, repeated, seeds, shapes, value
from .lowered import check, compiled, meaning, typed

floats = st.sampled_from(FLOATS)
LONG = (1, 63, 64, 65, 80, 131)     # around the number from which on sums have lanes


def some_axes(shape, seed):
    rng = np.random.default_rng(seed)
    return tuple(int(axis) - len(shape) * int(rng.integers(0, 2)) for axis in range(len(shape))
                 if rng.random() < 0.5)


def long_shapes(shape, seed):
    """Some shapes have a long last axis."""
    rng = np.random.default_rng(seed + 9)
    return (*shape[:-1], int(rng.choice(LONG))) if shape and rng.random() < 0.5 else shape


@example((0,), ReduceKind.MEAN, "float16", 126, False)          # of nothing: no number, no warning
@given(shapes(), st.sampled_from(ReduceKind), st.sampled_from(ALL), seeds, st.booleans())
def test_reductions(shape, kind, dtype, seed, keep):
    shape = long_shapes(shape, seed)
    operation = Reduce(x="x", kind=kind, axes=some_axes(shape, seed), keep=keep,
                       low=-3.0 if seed % 3 == 0 else None)
    special = kind in (ReduceKind.MAX, ReduceKind.MIN)
    x = typed(np.asarray(1 + numbers(shape, dtype, seed, special=False) / 8).astype(dtype)) if (
        kind == ReduceKind.PROD and dtype in FLOATS) else value(shape, dtype, seed, special=special)
    if kind == ReduceKind.MEAN and dtype in ("int64", "uint64"):
        x = typed((x.array // (1 << 20)).astype(dtype))    # exact sums, in any order
    try:
        result = operation.infer(x.type)
        operation.check(result, x.type)
    except GraphError:
        return
    check(operation, x, result=result, relative=2e-5)


@given(shapes(), st.sampled_from(["int8", "uint8", "int16"]), seeds, st.booleans(),
       st.sampled_from(list(Rounding)), st.sampled_from([ReduceKind.SUM, ReduceKind.MEAN]))
def test_reductions_of_quantized_numbers(shape, dtype, seed, keep, rounding, kind):
    x = quantized(shape, dtype, seed)
    operation = Reduce(x="x", kind=kind, axes=some_axes(shape, seed), keep=keep,
                       scales=(float(np.exp(seed % 7 - 5)),), rounding=rounding)
    try:
        shape = operation.infer(x.type).shape
    except GraphError:
        return
    check(operation, x, result=TensorType(shape, dtype, Quantization((0.5,), (9,))))


@given(shapes(1, 3), st.sampled_from(["int8", "uint8"]), seeds, st.booleans())
def test_reductions_in_fixed_point(shape, dtype, seed, keep):
    operation = FixedPointReduce(x="x", axes=some_axes(shape, seed), keep=keep,
                                 multiplier=1 << 30, shift=30 + seed % 8)
    x = quantized(shape, dtype, seed)
    check(operation, x, result=TensorType(operation.infer(x.type).shape, dtype,
                                          Quantization((0.5,), (9,))))


@given(shapes(1), st.sampled_from([ReduceKind.MAX, ReduceKind.MIN]), st.sampled_from(ALL), seeds,
       st.booleans(), st.booleans(), st.sampled_from(["int32", "int64"]))
def test_places(shape, kind, dtype, seed, keep, last, after):
    axis = seed % len(shape)
    shape = tuple(max(size, 1) if place == axis else size for place, size in enumerate(shape))
    operation = Arg(x="x", kind=kind, axis=axis - len(shape) * (seed // 7 % 2), keep=keep,
                    last=last)
    x = value(shape, dtype, seed)
    check(operation, x, result=TensorType(operation.infer(x.type).shape, after))


@given(shapes(1), floats, seeds, st.booleans())
def test_softmax(shape, dtype, seed, special):
    shape = long_shapes(shape, seed)
    x = value(shape, dtype, seed, special=special)
    axis = seed % len(shape) - len(shape) * (seed // 7 % 2)
    check(Softmax(x="x", axis=axis, beta=(1.0, 0.7, -2.0)[seed % 3]), x, relative=1e-5)
    check(LogSoftmax(x="x", axis=axis), x, relative=1e-5)


@given(shapes(1), floats, seeds, st.booleans())
def test_layer_norm(shape, dtype, seed, special):
    shape = long_shapes(shape, seed)
    axis = seed % len(shape)
    x = value(shape, dtype, seed, special=special and seed % 2 == 0)
    parameters = [value(shape[axis:], dtype, seed + 1 + place, special=False)
                  for place in range(seed % 3)]
    check(LayerNorm(x="x", axis=axis - len(shape) * (seed // 7 % 2), epsilon=0.01,
                    scale="s" if parameters else None,
                    bias="b" if len(parameters) > 1 else None), x, *parameters, relative=3e-5)


@given(shapes(2), floats, seeds)
def test_norms_of_channels(shape, dtype, seed):
    shape = long_shapes(shape, seed)
    channel = 1 + seed % (len(shape) - 1)
    x = value(shape, dtype, seed, special=False)
    scale, bias, mean = (value((shape[channel],), dtype, seed + place, special=False)
                         for place in range(1, 4))
    variance = typed(np.abs(numbers((shape[channel],), dtype, seed + 5, special=False)))
    check(BatchNorm(x="x", scale="s", bias="b", mean="m", variance="v", channel_axis=channel,
                    epsilon=0.1), x, scale, bias, mean, variance, relative=2e-5)
    check(InstanceNorm(x="x", scale="s", bias="b", channel_axis=channel, epsilon=0.1), x, scale,
          bias, relative=5e-5)


@given(shapes(1), floats, seeds, st.integers(0, 7), st.integers(0, 7),
       st.sampled_from([0.5, 0.75, 1.0, 0.3]))
def test_local_response_norm(shape, dtype, seed, before, after, beta):
    check(LocalResponseNorm(x="x", before=before, after=after, alpha=0.1, beta=beta, bias=1.5,
                            channel_axis=seed % len(shape)),
          value(shape, dtype, seed, special=False), relative=2e-5)


@given(shapes(1, 4, 1), st.sampled_from((*FLOATS, "int8", "uint8", "int16", "int32")), seeds,
       st.sampled_from(ResizeKind), st.sampled_from(Coordinates), st.sampled_from(Nearest))
def test_resize(shape, dtype, seed, kind, coordinates, nearest):
    rng = np.random.default_rng(seed)
    after = tuple(int(rng.integers(1, 9)) if rng.random() < 0.6 else size for size in shape)
    if rng.random() < 0.3:
        after = tuple(size * int(rng.integers(1, 4)) for size in shape)
    ratios = tuple(later / size * float(rng.uniform(0.9, 1.1)) for later, size
                   in zip(after, shape, strict=True)) if rng.random() < 0.3 else ()
    check(Resize(x="x", shape=after, kind=kind, coordinates=coordinates, nearest=nearest,
                 ratios=ratios), value(shape, dtype, seed, special=False), relative=2e-5)


@given(shapes(4, 4, 1, 4), st.tuples(st.integers(1, 9), st.integers(1, 9)),
       st.sampled_from(["int8", "uint8", "int16"]), seeds, st.sampled_from(RESIZES))
def test_resize_in_fixed_point(shape, sides, dtype, seed, coordinates):
    check(FixedPointResize(x="x", sides=sides, coordinates=coordinates),
          value(shape, dtype, seed))


@given(shapes(4, 4, 1, 5), st.sampled_from(((2, 2), (1, 2), (3, 1), (4, 2))), seeds,
       st.sampled_from(Rounding))
def test_upsample(shape, factors, seed, rounding):
    rng = np.random.default_rng(seed)
    operation = Upsample(x="x", factors=factors, centred=bool(seed % 2), raw=bool(seed // 2 % 2),
                         channel_axis=(1, 3)[seed // 4 % 2], scales=(float(rng.uniform(0.01, 1)),),
                         rounding=rounding, low=-100)
    check(operation, quantized(shape, ("int8", "uint8")[seed % 3 == 0], seed))


@given(shapes(0, 3), st.integers(1, 12), st.sampled_from(["int8", "uint8"]), seeds)
def test_softmax_in_fixed_point(rows, size, dtype, seed):
    rng = np.random.default_rng(seed)
    x = quantized((*rows, size), dtype, seed, scale=float(np.exp(rng.uniform(-6, 1))))
    result = TensorType((*rows, size), dtype, Quantization((2.0 ** -8,), (np.iinfo(dtype).min,)))
    check(FixedPointSoftmax(x="x", beta=float(rng.uniform(0.3, 3))), x, result=result)


@given(shapes(), st.sampled_from(["int8", "uint8"]), seeds)
def test_functions_in_fixed_point(shape, dtype, seed):
    left = quantized(repeated(shape, seed), dtype, seed)
    right = quantized(repeated(shape, seed + 1), dtype, seed + 1)
    for operation in (FixedPointPrelu(x="l", slopes="r"),
                      FixedPointSquaredDifference(left="l", right="r")):
        check(operation, left, right, result=TensorType(
            operation.infer(left.type, right.type).shape, dtype, Quantization((0.4,), (9,))))


def test_three_numbers_of_64_bits_become_8_bits_in_machine_code():
    x = value((3, 70), "int8", 1)
    operation = Reduce(x="x", kind=ReduceKind.PROD, axes=(1,))
    result = operation.infer(x.type)
    np.testing.assert_array_equal(compiled(operation, result, [x]),
                                  meaning(operation, result, [x]))
