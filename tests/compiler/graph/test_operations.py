"""What graphs mean equals what operators must give, to the bit, and refuses what makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph import operations  # noqa: F401  (makes them known)
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate, evaluate_all
from microtron.compiler.graph.operation import OPERATIONS, describe_operation
from microtron.compiler.graph.operations.data_movement.blocks import SpaceToDepth
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Rescale,
)
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.elementwise.elementwise import Elementwise
from microtron.compiler.operators.pool.pool import Pool as PoolSpec
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.instructions import Rounding

from ..operators.references import expected


def operand_of(rng, *shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def parameters(rng, channels):
    scales = tuple(rng.uniform(0.001, 0.02, channels).tolist())
    pairs = [quantize_scale(each) for each in scales]
    bias = rng.integers(-5000, 5000, channels).astype(np.int32)
    return scales, bias, {"bias": bias, "multiplier": np.array([each[0] for each in pairs]),
                          "shift": np.array([each[1] for each in pairs])}


@pytest.mark.parametrize("channel_axis", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_convolutions_are_those_of_the_operators(seed, channel_axis):
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 2, 3]))
    inputs, outputs = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    spec = Grouped(height=9, width=8, channels_in=inputs, channels_out=outputs, groups=groups,
                   kernel=(3, 2), stride=rng.integers(1, 3, 2), dilation=rng.integers(1, 3, 2),
                   pad=rng.integers(0, 3, 4), images=2, zero_point_in=int(rng.integers(-9, 9)),
                   zero_point_out=7, low=-100, high=90, rounding=Rounding(int(rng.integers(3))))
    data = operand_of(rng, 2, inputs, 9, 8)
    weights = operand_of(rng, outputs, inputs // groups, 3, 2)
    scales, bias, given = parameters(rng, outputs)
    builder = Builder()
    axes = (0, 1, 2, 3) if channel_axis == 1 else (0, 2, 3, 1)
    image = data.transpose(axes)
    builder.input("x", TensorType(image.shape, "int8", Quantization((0.5,), (spec.zero_point_in,))))
    builder.constant("w", weights, Quantization((0.1,)))
    builder.constant("b", bias)
    builder.add("y", Conv(x="x", weights="w", bias="b", stride=spec.stride, dilation=spec.dilation,
                          pad=spec.pad, groups=groups, channel_axis=channel_axis, scales=scales,
                          rounding=spec.rounding, low=-100, high=90), dtype="int8",
                quantization=Quantization((1.0,), (7,)))
    found = evaluate(builder.graph(("y",)), {"x": image})["y"]
    right = expected(spec, {"data": data, "weights": weights, **given})
    assert (found == right.transpose(axes)).all()


def test_a_transposed_convolution_is_that_of_the_operator():
    rng = np.random.default_rng(1)
    spec = Transposed(height=4, width=5, channels_in=3, channels_out=2, kernel=(3, 4), stride=2,
                      pad=(1, 0, 1, 2), output_padding=(1, 0), zero_point_in=3, zero_point_out=-4)
    data, weights = operand_of(rng, 1, 3, 4, 5), operand_of(rng, 3, 2, 3, 4)
    scales, bias, given = parameters(rng, 2)
    builder = Builder()
    builder.input("x", TensorType(data.shape, "int8", Quantization((0.5,), (3,))))
    builder.constant("w", weights.transpose(1, 0, 2, 3), Quantization((0.1,)))
    builder.constant("b", bias)
    builder.add("y", TransposedConv(x="x", weights="w", bias="b", stride=(2, 2), pad=(1, 0, 1, 2),
                                    output_padding=(1, 0), channel_axis=1, scales=scales),
                dtype="int8", quantization=Quantization((1.0,), (-4,)))
    found = evaluate(builder.graph(("y",)), {"x": data})["y"]
    assert (found == expected(spec, {"data": data, "weights": weights, **given})).all()


@pytest.mark.parametrize("rounding", [Rounding.AWAY, Rounding.EVEN])
@pytest.mark.parametrize("kind", ["max", "average"])
def test_pools_are_those_of_the_operator(kind, rounding):
    rng = np.random.default_rng(2)
    data = operand_of(rng, 2, 3, 9, 7)
    spec = PoolSpec(kind=kind, height=9, width=7, channels=3, images=2, kernel=3, stride=2, pad=1,
                    rounding=rounding)
    builder = Builder()
    builder.input("x", TensorType(data.shape, "int8", Quantization((0.5,), (9,))))
    builder.add("y", Pool(x="x", kind=PoolKind(kind), kernel=(3, 3), stride=(2, 2), raw=True,
                          pad=(1, 1, 1, 1), channel_axis=1, rounding=rounding),
                quantization=Quantization((0.5,), (9,)))
    found = evaluate(builder.graph(("y",)), {"x": data})["y"]
    assert (found == expected(spec, {"data": data})).all()


def test_an_average_with_another_scale_is_that_of_the_operator():
    rng = np.random.default_rng(3)
    data = operand_of(rng, 1, 2, 6, 6)
    spec = PoolSpec(kind="average", height=6, width=6, channels=2, kernel=3, pad=1, scale_in=0.5,
                    scale_out=0.3, zero_point_in=9, zero_point_out=-3, rounding="even")
    builder = Builder()
    builder.input("x", TensorType(data.shape, "int8", Quantization((0.5,), (9,))))
    builder.add("y", Pool(x="x", kind=PoolKind.AVERAGE, kernel=(3, 3), pad=(1, 1, 1, 1),
                          channel_axis=1, rounding=Rounding.EVEN, scales=(0.5 / 0.3,)),
                quantization=Quantization((0.3,), (-3,)))
    found = evaluate(builder.graph(("y",)), {"x": data})["y"]
    assert (found == expected(spec, {"data": data})).all()


def test_an_average_that_is_scaled_by_one_is_rounded_exactly():
    rng = np.random.default_rng(6)
    data = operand_of(rng, 1, 4, 6, 8)
    results = []
    for scales in ((), (1.0,)):
        builder = Builder()
        builder.input("x", TensorType(data.shape, "int8", Quantization((0.5,), (9,))))
        builder.add("y", Pool(x="x", kind=PoolKind.AVERAGE, kernel=(3, 2), channel_axis=1,
                              rounding=Rounding.EVEN, scales=scales))
        results.append(evaluate(builder.graph(("y",)), {"x": data})["y"])
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("kind", ["add", "mul"])
@pytest.mark.parametrize("rounding", list(Rounding))
def test_sums_and_products_are_those_of_the_operator(kind, rounding):
    rng = np.random.default_rng(4)
    left, right = operand_of(rng, 1, 5, 4, 4), operand_of(rng, 1, 5, 4, 4)
    spec = Elementwise(operation=kind, channels=5, height=4, width=4, scale_left=0.11,
                       scale_right=0.07, scale_out=0.13, zero_point_left=4, zero_point_right=-6,
                       zero_point_out=2, rounding=rounding)
    builder = Builder()
    builder.input("l", TensorType(left.shape, "int8", Quantization((0.11,), (4,))))
    builder.input("r", TensorType(left.shape, "int8", Quantization((0.07,), (-6,))))
    builder.add("y", Binary(kind=BinaryKind(kind), left="l", right="r", rounding=rounding,
                            scales=(0.11 * 0.07 / 0.13,) if kind == "mul" else ()),
                quantization=Quantization((0.13,), (2,)))
    found = evaluate(builder.graph(("y",)), {"l": left, "r": right})["y"]
    assert (found == expected(spec, {"left": left, "right": right})).all()


def test_a_matrix_product_is_that_of_the_operator():
    rng = np.random.default_rng(5)
    data, weights = operand_of(rng, 3, 20), operand_of(rng, 7, 20)
    scales, bias, given = parameters(rng, 7)
    spec = Dense(rows=3, inputs=20, outputs=7, zero_point_in=5, zero_point_out=-8)
    builder = Builder()
    builder.input("x", TensorType(data.shape, "int8", Quantization((0.5,), (5,))))
    builder.constant("w", weights.T, Quantization((0.1,)))
    builder.constant("b", bias)
    builder.add("y", MatMul(left="x", right="w", bias="b", scales=scales, rounding=Rounding.AWAY),
                dtype="int8", quantization=Quantization((1.0,), (-8,)))
    found = evaluate(builder.graph(("y",)), {"x": data})["y"]
    assert (found == expected(spec, {"data": data, "weights": weights, **given})).all()


def test_real_numbers_are_quantized_with_ties_to_even_or_away():
    values = np.array([0.5, 1.5, -0.5, -1.5, 2.5, 1e9, -np.inf, np.nan], np.float32)
    for rounding, right in ((Rounding.EVEN, [0, 2, 0, -2, 2]), (Rounding.AWAY, [1, 2, -1, -2, 3])):
        builder = Builder()
        builder.input("x", TensorType((8,), "float32"))
        builder.add("y", Quantize(x="x", rounding=rounding),
                    quantization=Quantization((1.0,), (3,)))
        builder.add("z", Dequantize(x="y"))
        found = evaluate_all(builder.graph(("z",)), {"x": values})
        assert found["y"].tolist() == [each + 3 for each in right] + [127, -128, 3]
        assert found["z"].tolist()[:5] == right


def test_shapes_move_numbers():
    array = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    builder = Builder()
    builder.input("x", TensorType(array.shape, "int8"))
    builder.add("r", Reshape(x="x", shape=(6, 4)))
    builder.add("t", Transpose(x="r", order=(1, 0)))
    builder.add("s", Slice(x="t", starts=(3, 0), stops=(-1, 6), steps=(-1, 2)))
    builder.add("p", Pad(x="s", before=(0, 1), after=(0, 0), value=-7))
    builder.add("c", Concat(parts=("p", "p"), axis=0))
    builder.add("k", Clamp(x="c", low=0, high=20))
    table = builder.constant("table", np.arange(255, -1, -1).astype(np.uint8))
    builder.add("l", Lookup(x="k", table=table))
    found = evaluate_all(builder.graph(("l",)), {"x": array})
    sliced = array.reshape(6, 4).T[::-1, ::2]
    padded = np.pad(sliced, ((0, 0), (1, 0)), constant_values=-7)
    assert (found["c"] == np.concatenate([padded, padded])).all()
    assert (found["l"] == 127 - np.clip(found["c"], 0, 20)).all()


@pytest.mark.parametrize(("start", "stop", "step"), [(-1, -1, -3), (0, 0, 1), (0, 2, -1)])
def test_a_slice_of_nothing_has_nothing(start, stop, step):
    builder = Builder()
    builder.input("x", TensorType((2,), "int8"))
    builder.add("y", Slice(x="x", starts=(start,), stops=(stop,), steps=(step,)))
    assert evaluate(builder.graph(("y",)), {"x": np.int8([1, 2])})["y"].shape == (0,)


def test_what_makes_no_sense_is_refused_in_one_line():
    builder = Builder()
    builder.input("x", TensorType((1, 8, 8, 3), "int8", Quantization((0.5,))))
    builder.constant("w", np.zeros((4, 2, 3, 3), np.int8))
    for operation, words in (
            (Conv(x="x", weights="w"), "weights have shape"),
            (Conv(x="nowhere", weights="w"), "before it is computed"),
            (Reshape(x="x", shape=(5,)), "192 elements, not 5"),
            (Transpose(x="x", order=(0, 1)), "order is"),
            (Pool(x="x", kind=PoolKind.MAX, kernel=(9, 9)), "larger than the padded input"),
            (MatMul(left="x", right="x"), "cannot be multiplied")):
        with pytest.raises(GraphError, match=words) as raised:
            builder.add("y", operation)
        assert "\n" not in str(raised.value)
    for wrong in (((-1,), "int8"), ((1,), "complex64"), ((1 << 20, 1 << 20), "int8")):
        with pytest.raises(GraphError):
            TensorType(*wrong)
    with pytest.raises(GraphError, match="zero point is 200"):
        TensorType((1,), "int8", Quantization((1.0,), (200,)))


def test_every_operation_has_a_meaning_and_a_listing():
    for name, kind in OPERATIONS.items():
        if name in ("Operation", "Clamped", "Scaled"):
            continue
        assert kind.compute.__qualname__.split(".")[0] != "Operation", name
        assert kind.__doc__, name
    assert describe_operation(Clamp(x="a", low=0.0)) == "Clamp(a, low=0)"


def test_single_numbers_stay_without_axes():
    builder = Builder()
    builder.input("x", TensorType((), "float32"))
    half = builder.constant("half", np.float32(0.5))
    builder.add("y", Binary(kind=BinaryKind.MUL, left="x", right=half))
    assert evaluate(builder.graph(("y",)), {"x": np.float32(3)})["y"].shape == ()


def test_two_spellings_of_conv2d_agree():
    """Grouped with one group is the plain convolution: the reference of the first test is sound."""
    rng = np.random.default_rng(0)
    data, weights = operand_of(rng, 1, 4, 5, 5), operand_of(rng, 2, 4, 3, 3)
    _, _, given = parameters(rng, 2)
    fields = {"height": 5, "width": 5, "channels_in": 4, "channels_out": 2}
    operands = {"data": data, "weights": weights, **given}
    assert (expected(Conv2d(**fields), operands)
            == expected(Grouped(**fields, groups=1), operands)).all()


def test_scales_that_cannot_be_multiplied_with_are_refused_before_anything_is_computed():
    for operation in (Rescale(x="x"), Binary(kind=BinaryKind.ADD, left="x", right="x")):
        builder = Builder()
        builder.input("x", TensorType((2,), "int8", Quantization((1e30,))))
        with pytest.raises(GraphError, match="but must be from 0 to"):
            builder.add("y", operation, dtype="int8", quantization=Quantization((1e-30,)))


def test_a_border_beyond_all_memory_is_refused_before_anything_is_computed():
    x = TensorType((1, 8, 8, 1), "float32")
    pool = Pool(x="x", kind=PoolKind.MAX, kernel=(1 << 20, 1 << 20), pad=(1 << 20,) * 4)
    with pytest.raises(GraphError, match="more than 2147483648"):
        pool.infer(x)
    weights = TensorType((1, 1, 3, 3), "float32")
    with pytest.raises(GraphError, match="more than 2147483648"):
        TransposedConv(x="x", weights="w", stride=(1 << 20, 1 << 20),
                       pad=(0, 7 << 20, 0, 7 << 20)).infer(x, weights)


def test_no_pixels_are_no_blocks():
    builder = Builder()
    builder.input("x", TensorType((2, 0, 4, 3), "float32"))
    builder.add("y", SpaceToDepth(x="x", block=2))
    found = evaluate(builder.graph(("y",)), {"x": np.zeros((2, 0, 4, 3), np.float32)})["y"]
    assert found.shape == (2, 0, 2, 12)
