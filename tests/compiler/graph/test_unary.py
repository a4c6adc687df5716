"""Functions, logic, reductions, picks, resizes and norms mean what NumPy says in so many words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from microtron.compiler.graph import operations  # noqa: F401  (makes them known)
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthOrder,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from microtron.compiler.graph.operations.data_movement.indexing import (
    Expand,
    Gather,
    GatherNd,
    OneHot,
    Tile,
)
from microtron.compiler.graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from microtron.compiler.graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from microtron.compiler.graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from microtron.compiler.graph.operations.pointwise.unary import (
    FUNCTIONS,
    Cast,
    Unary,
    UnaryKind,
    erf,
)
from microtron.compiler.graph.operations.vision.resize import (
    Coordinates,
    Nearest,
    Resize,
    ResizeKind,
)
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.isa.arithmetic import quantize_scale, scale_array
from microtron.isa.instructions import Rounding

VALUES = np.array([-80, -3.5, -2.5, -1, -0.75, -1e-6, 0, 0.25, 0.5, 1, 1.5, 3.25, 80], np.float32)


def result(operation, *, dtype=None, quantization=None, **arrays):
    """What an operation gives for arrays under the names of its operands; an array may come with
    its quantization."""
    builder, inputs = Builder(), {}
    for name, each in arrays.items():
        array, known = each if isinstance(each, tuple) else (np.asarray(each), None)
        inputs[name] = array
        builder.input(name, TensorType(array.shape, str(array.dtype), known))
    builder.add("result", operation, dtype=dtype, quantization=quantization)
    return evaluate(builder.graph(("result",)), inputs)["result"]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def negative_part(x, otherwise):
    return x if x >= 0 else otherwise


MEANINGS = {
    UnaryKind.ABS: abs, UnaryKind.NEG: lambda x: -x, UnaryKind.SIGN: lambda x: (x > 0) - (x < 0),
    UnaryKind.SQUARE: lambda x: x * x, UnaryKind.EXP: math.exp, UnaryKind.LOG: math.log,
    UnaryKind.SQRT: math.sqrt, UnaryKind.RSQRT: lambda x: x ** -0.5,
    UnaryKind.RECIPROCAL: lambda x: 1 / x, UnaryKind.SIN: math.sin, UnaryKind.COS: math.cos,
    UnaryKind.TAN: math.tan, UnaryKind.ASIN: math.asin, UnaryKind.ACOS: math.acos,
    UnaryKind.ATAN: math.atan, UnaryKind.SINH: math.sinh, UnaryKind.COSH: math.cosh,
    UnaryKind.ASINH: math.asinh, UnaryKind.ACOSH: math.acosh, UnaryKind.ATANH: math.atanh,
    UnaryKind.TANH: math.tanh, UnaryKind.ERF: math.erf, UnaryKind.SIGMOID: sigmoid,
    UnaryKind.SOFTPLUS: softplus, UnaryKind.SOFTSIGN: lambda x: x / (1 + abs(x)),
    UnaryKind.FLOOR: math.floor, UnaryKind.CEIL: math.ceil, UnaryKind.ROUND: round,
    UnaryKind.HARD_SIGMOID: lambda x: min(max(0.3 * x + 0.7, 0), 1),
    UnaryKind.HARD_SWISH: lambda x: x * min(max(x + 3, 0), 6) / 6,
    UnaryKind.SWISH: lambda x: x * sigmoid(0.3 * x),
    UnaryKind.MISH: lambda x: x * math.tanh(softplus(x)),
    UnaryKind.GELU: lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    UnaryKind.GELU_TANH: lambda x: x / 2 * (1 + math.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
    UnaryKind.ELU: lambda x: negative_part(x, 0.3 * math.expm1(min(x, 0))),
    UnaryKind.SELU: lambda x: 0.7 * negative_part(x, 0.3 * math.expm1(min(x, 0))),
    UnaryKind.CELU: lambda x: negative_part(x, 0.3 * math.expm1(min(x, 0) / 0.3)),
    UnaryKind.LEAKY_RELU: lambda x: negative_part(x, 0.3 * x),
    UnaryKind.THRESHOLDED_RELU: lambda x: x if x > 0.3 else 0,
}


@pytest.mark.parametrize("kind", UnaryKind)
def test_functions_are_those_of_mathematics(kind):
    found = result(Unary(kind=kind, x="x", alpha=0.3, beta=0.7), x=VALUES)
    for value, got in zip(VALUES.tolist(), found.tolist(), strict=True):
        try:
            right = MEANINGS[kind](value)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue                            # no number, or an infinite one
        assert not isinstance(right, complex) or math.isnan(got)
        if not isinstance(right, complex):
            assert got == pytest.approx(right, rel=1e-6, abs=1e-9), value


def test_every_function_has_a_meaning():
    assert set(FUNCTIONS) == set(UnaryKind) == set(MEANINGS)


def test_erf_is_exact_to_the_last_places_and_knows_what_is_no_number():
    values = np.concatenate([np.linspace(-7, 7, 20001), [np.inf, -np.inf, 1e30]])
    right = np.array([math.erf(each) for each in values])
    assert np.abs(erf(values) - right).max() < 4e-16
    assert np.isnan(erf(np.array([np.nan]))).all()


def test_functions_of_integers_stay_integers():
    values = np.array([-3, 0, 5], np.int64)
    assert result(Unary(kind=UnaryKind.ABS, x="x"), x=values).tolist() == [3, 0, 5]
    with pytest.raises(GraphError, match="must be real numbers"):
        result(Unary(kind=UnaryKind.EXP, x="x"), x=values)
    with pytest.raises(GraphError, match="or plain integers"):
        result(Unary(kind=UnaryKind.NEG, x="x"), x=(np.zeros(1, np.int8), Quantization((1.0,))))


def test_casts_saturate_drop_fractions_and_keep_low_bits():
    values = np.array([-300.7, -1.9, 1.9, 200.2, 1e20, np.nan, -np.inf], np.float32)
    assert result(Cast(x="x", dtype="int8"), x=values).tolist() == [-128, -1, 1, 127, 127, 0, -128]
    high = 2 ** 63 - 1
    assert result(Cast(x="x", dtype="int64"), x=values).tolist() == [
        -300, -1, 1, 200, high, 0, -high - 1]
    assert result(Cast(x="x", dtype="int8"), x=np.array([300, -1])).tolist() == [44, -1]
    assert result(Cast(x="x", dtype="bool"), x=values[1:3] * 0.1).tolist() == [True, True]
    with pytest.raises(GraphError, match="cannot become"):
        result(Cast(x="x", dtype="complex64"), x=values)


@pytest.mark.parametrize(("kind", "right"), [
    ("equal", [0, 1, 0]), ("not_equal", [1, 0, 1]), ("less", [1, 0, 0]),
    ("less_equal", [1, 1, 0]), ("greater", [0, 0, 1]), ("greater_equal", [0, 1, 1])])
def test_comparisons(kind, right):
    found = result(Compare(kind=CompareKind(kind), left="l", right="r"),
                   l=np.array([1, 2, 3]), r=np.array([2]))
    assert found.dtype == bool
    assert found.tolist() == [bool(each) for each in right]


def test_comparisons_want_one_type():
    with pytest.raises(GraphError, match="both must be of one type"):
        result(Compare(kind=CompareKind.LESS, left="l", right="r"),
               l=(np.zeros(1, np.int8), Quantization((1.0,))), r=np.zeros(1, np.int8))


@pytest.mark.parametrize(("kind", "right"), [("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]),
                                             ("xor", [0, 1, 1, 0])])
def test_truth_values_are_joined(kind, right):
    left, other = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    found = result(Logical(kind=LogicKind(kind), left="l", right="r"), l=left, r=other)
    assert found.tolist() == [bool(each) for each in right]
    assert result(Not(x="x"), x=left).tolist() == [True, True, False, False]
    with pytest.raises(GraphError, match="must be bool"):
        result(Not(x="x"), x=np.zeros(3))


def test_where_chooses_and_repeats():
    condition = np.array([[True], [False]])
    found = result(Where(condition="c", left="l", right="r"), c=condition,
                   l=np.array([1.0, 2.0]), r=np.array(9.0))
    assert found.tolist() == [[1, 2], [9, 9]]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("kind", ReduceKind)
def test_reductions(kind, axes, keep):
    x = np.random.default_rng(0).uniform(-2, 2, (3, 4, 5)).astype(np.float32)
    found = result(Reduce(kind=kind, x="x", axes=axes, keep=keep), x=x)
    right = getattr(np, kind.value)(x.astype(np.float64), axis=axes, keepdims=keep)
    np.testing.assert_allclose(found, right, rtol=1e-6)


def test_a_mean_of_integers_loses_its_fraction_and_truth_values_have_any_and_all():
    assert result(Reduce(kind=ReduceKind.MEAN, x="x", axes=(0,)), x=np.array([-3, 0])) == -1
    truth = np.array([[True, False], [True, True]])
    assert result(Reduce(kind=ReduceKind.MIN, x="x", axes=(1,)), x=truth).tolist() == [False, True]
    with pytest.raises(GraphError, match="must be numbers"):
        result(Reduce(kind=ReduceKind.SUM, x="x", axes=(1,)), x=truth)
    with pytest.raises(GraphError, match="nothing of"):
        result(Reduce(kind=ReduceKind.MEAN, x="x", axes=(0,)), x=np.zeros((0, 2), int))


@pytest.mark.parametrize(("dtype", "largest", "least"), [
    ("float32", -np.inf, np.inf), ("int8", -128, 127), ("uint64", 0, 2 ** 64 - 1),
    ("bool", False, True)])
def test_the_largest_of_nothing_is_the_least_number_and_the_other_way_round(dtype, largest, least):
    for kind, expected in ((ReduceKind.MAX, largest), (ReduceKind.MIN, least)):
        found = result(Reduce(kind=kind, x="x", axes=(0,)), x=np.zeros((0, 2), dtype))
        assert found.dtype == dtype
        assert found.tolist() == [expected] * 2


def test_a_quantized_mean_is_a_scaled_sum():
    x = np.random.default_rng(1).integers(-128, 128, (2, 30)).astype(np.int8)
    real = 0.5 / 0.3 / 30
    found = result(Reduce(kind=ReduceKind.MEAN, x="x", axes=(1,), scales=(real,),
                          rounding=Rounding.EVEN),
                   x=(x, Quantization((0.5,), (7,))), quantization=Quantization((0.3,), (-2,)))
    sums = x.astype(np.int64).sum(1) - 30 * 7
    right = np.clip(scale_array(sums, *quantize_scale(real), Rounding.EVEN) - 2, -128, 127)
    assert found.tolist() == right.tolist()
    with pytest.raises(GraphError, match="with one scale"):
        result(Reduce(kind=ReduceKind.MEAN, x="x", axes=(1,)), x=(x, Quantization((0.5,))),
               quantization=Quantization((0.3,)))


@pytest.mark.parametrize(("kind", "last", "right"), [("max", False, [1, 0]), ("max", True, [3, 2]),
                                                     ("min", False, [2, 3]), ("min", True, [2, 3])])
def test_places_of_the_largest_and_the_least(kind, last, right):
    x = np.array([[1, 5, 0, 5], [7, 3, 7, 2]], np.int8)
    operation = Arg(kind=ReduceKind(kind), x="x", axis=-1, last=last)
    assert result(operation, x=x).tolist() == right
    assert result(operation, x=x, dtype="int32").dtype == np.int32
    with pytest.raises(GraphError, match="int32 or int64"):
        result(operation, x=x, dtype="int8")


def test_gathers():
    x = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[-1, 0], [2, 1]])
    assert (result(Gather(x="x", indices="i", axis=1), x=x, i=indices)
            == x[:, [[2, 0], [2, 1]]]).all()
    found = result(Gather(x="x", indices="i", axis=2, batch=1), x=x, i=indices)
    assert (found == np.stack([x[0][:, [3, 0]], x[1][:, [2, 1]]])).all()
    assert result(GatherNd(x="x", indices="i"), x=x, i=np.array([[0, -1, 3], [1, 0, 2]])
                  ).tolist() == [11, 14]
    assert (result(GatherNd(x="x", indices="i", batch=1), x=x, i=np.array([[1], [2]]))
            == np.stack([x[0, 1], x[1, 2]])).all()
    with pytest.raises(GraphError, match="an index is 3, but the axis has 3"):
        result(Gather(x="x", indices="i", axis=1), x=x, i=np.array([3]))
    with pytest.raises(GraphError, match="must be int32 or int64"):
        result(Gather(x="x", indices="i", axis=1), x=x, i=np.array([0.0]))


def test_repetitions_and_one_hot():
    x = np.array([[1], [2]], np.int8)
    assert result(Tile(x="x", repeats=(2, 3)), x=x).tolist() == np.tile(x, (2, 3)).tolist()
    assert result(Expand(x="x", shape=(3, 1, 2)), x=x).tolist() == [[[1, 1], [2, 2]]] * 3
    indices = np.array([0, 2, -1, 5])
    found = result(OneHot(indices="i", depth=3, on=7, off=-1), i=indices, dtype="int8")
    assert found.tolist() == [[7, -1, -1], [-1, -1, 7], [-1, -1, -1], [-1, -1, -1]]
    assert result(OneHot(indices="i", depth=3, axis=0, wrap=True), i=indices)[:, 2].tolist() == [
        0, 0, 1]


@pytest.mark.parametrize("order", DepthOrder)
@pytest.mark.parametrize("channel_axis", [1, 3])
def test_depth_becomes_space(order, channel_axis):
    image = np.arange(2 * 3 * 2 * 12).reshape(2, 3, 2, 12)
    found = result(DepthToSpace(x="x", block=2, order=order, channel_axis=channel_axis),
                   x=np.moveaxis(image, -1, channel_axis))
    found = np.moveaxis(found, channel_axis, -1)
    for n, y, x, channel in np.ndindex(2, 6, 4, 3):
        place = (y % 2) * 2 + x % 2
        depth = place * 3 + channel if order == DepthOrder.BLOCK_FIRST else channel * 4 + place
        assert found[n, y, x, channel] == image[n, y // 2, x // 2, depth]
    if order == DepthOrder.BLOCK_FIRST:
        assert (result(SpaceToDepth(x="x", block=2), x=found) == image).all()


def test_space_becomes_batches_and_back():
    x = np.arange(2 * 5 * 4 * 3).reshape(2, 5, 4, 3)
    there = result(SpaceToBatch(x="x", block=(3, 2), before=(1, 0), after=(0, 2), value=-1), x=x)
    padded = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=-1)
    for place, (y, column) in enumerate(itertools.product(range(3), range(2))):
        assert (there[2 * place:2 * place + 2] == padded[:, y::3, column::2]).all()
    back = result(BatchToSpace(x="x", block=(3, 2), before=(1, 0), after=(0, 2)), x=there)
    assert (back == x).all()
    with pytest.raises(GraphError, match="no multiples"):
        result(SpaceToBatch(x="x", block=(3, 2), before=(0, 0), after=(0, 0)), x=x)


def test_resizes_take_the_nearest_or_an_average():
    x = np.array([[10.0, 20.0, 40.0]])
    for coordinates, nearest, right in (
            (Coordinates.ASYMMETRIC, Nearest.FLOOR, [10, 10, 20, 20, 40, 40]),
            (Coordinates.ASYMMETRIC, Nearest.CEIL, [10, 20, 20, 40, 40, 40]),
            (Coordinates.ASYMMETRIC, Nearest.ROUND_PREFER_FLOOR, [10, 10, 20, 20, 40, 40]),
            (Coordinates.ASYMMETRIC, Nearest.ROUND_PREFER_CEIL, [10, 20, 20, 40, 40, 40]),
            (Coordinates.ALIGN_CORNERS, Nearest.ROUND_PREFER_FLOOR, [10, 10, 20, 20, 40, 40])):
        found = result(Resize(x="x", shape=(1, 6), coordinates=coordinates, nearest=nearest), x=x)
        assert found.tolist() == [right], (coordinates, nearest)
    for coordinates, right in ((Coordinates.HALF_PIXEL, [10, 12.5, 17.5, 25, 35, 40]),
                               (Coordinates.ALIGN_CORNERS, [10, 14, 18, 24, 32, 40]),
                               (Coordinates.ASYMMETRIC, [10, 15, 20, 30, 40, 40])):
        found = result(Resize(x="x", shape=(1, 6), kind=ResizeKind.LINEAR,
                              coordinates=coordinates), x=x)
        np.testing.assert_allclose(found, [right])
    whole = result(Resize(x="x", shape=(1, 6), kind=ResizeKind.LINEAR), x=x.astype(np.uint8))
    assert whole.tolist() == [[10, 12, 17, 25, 35, 40]]


def test_norms():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
    scale, bias, mean = rng.normal(size=(3, 5)).astype(np.float32)
    variance = rng.uniform(0.5, 2, 5).astype(np.float32)
    exponentials = np.exp(x.astype(np.float64) * 0.5)
    soft = exponentials / exponentials.sum(1, keepdims=True)
    for operation, right in (
            (Softmax(x="x", axis=1, beta=0.5), soft),
            (LogSoftmax(x="x", axis=1),
             x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))),
            (LayerNorm(x="x", scale="s", bias="b"),
             (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
             * scale + bias),
            (LayerNorm(x="x", axis=2),
             (x - x.mean((2, 3), keepdims=True))
             / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)),
            (BatchNorm(x="x", scale="s", bias="b", mean="m", variance="v"),
             (x - mean) / np.sqrt(variance + 1e-5) * scale + bias),
            (InstanceNorm(x="x", scale="s", bias="b"),
             (x - x.mean((1, 2), keepdims=True))
             / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5) * scale + bias)):
        given = {"x": x, "s": scale, "b": bias, "m": mean, "v": variance}
        found = result(operation, **{name: given[name] for name in operation.operands()})
        np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-6)
    found = result(LocalResponseNorm(x="x", before=1, after=2, alpha=0.1, beta=0.75, bias=2), x=x)
    for channel in range(5):
        near = np.square(x[..., max(channel - 1, 0):channel + 3]).sum(-1)
        np.testing.assert_allclose(found[..., channel],
                                   x[..., channel] / (2 + 0.1 * near) ** 0.75, rtol=1e-5)
    with pytest.raises(GraphError, match=r"must have \(3,\)"):
        result(InstanceNorm(x="x", scale="s", bias="b", channel_axis=1), x=x, s=scale, b=bias)
