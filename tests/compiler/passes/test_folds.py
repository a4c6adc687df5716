"""What folding passes make of a graph, and what they leave alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.graph import Constant
from microtron.compiler.graph.operations.data_movement.indexing import Expand, Gather
from microtron.compiler.graph.operations.data_movement.shape import (
    Pad,
    PadMode,
    Reshape,
    Transpose,
)
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import BatchNorm
from microtron.compiler.graph.operations.layers.reduction import Reduce, ReduceKind
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Clamp, Dequantize, Rescale
from microtron.compiler.graph.operations.tflite.eight_bit import FixedPointReduce, FixedPointResize
from microtron.compiler.graph.operations.vision.resize import Coordinates, Resize, ResizeKind
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.compiler.passes.fold_batch_norm import fold_batch_norm
from microtron.compiler.passes.fold_constants import (
    LARGEST_GROWTH,
    fold_constants,
    fold_dequantized,
)
from microtron.compiler.passes.fold_pad import fold_pad
from microtron.compiler.passes.fold_transpose import fold_transpose
from microtron.compiler.passes.fuse_clamp import fuse_clamp
from microtron.compiler.passes.normalize import normalize
from microtron.compiler.passes.remove_dead import remove_dead
from microtron.isa.arithmetic import quantize_scale

from .checks import changed, kinds

RNG = np.random.default_rng(0)
KNOWN = Quantization((0.5,), (3,))


def reals(*shape):
    return RNG.normal(0, 1, shape).astype(np.float32)


def with_input(shape, dtype="int8", quantization=KNOWN):
    builder = Builder()
    builder.input("x", TensorType(shape, dtype, quantization if dtype == "int8" else None))
    return builder


def test_what_is_known_is_computed():
    builder = with_input((2, 3), "float32")
    builder.constant("w", reals(4, 3))
    builder.add("t", Transpose(x="w", order=(1, 0)))
    builder.add("y", MatMul(left="x", right="t"))
    found = changed(fold_constants, builder.graph(("y",)))
    assert kinds(found) == ["MatMul"]
    assert (found.array("t") == found.array("w").T).all()


def test_large_results_outputs_and_dequantized_weights_are_not_folded():
    builder = with_input((2, 3), "float32")
    builder.constant("w", np.ones((3, 4), np.int8), KNOWN)
    builder.constant("one", reals(1, 1))
    builder.add("r", Dequantize(x="w"))
    builder.add("y", MatMul(left="x", right="r"))
    builder.add("large", Expand(x="one", shape=(1, LARGEST_GROWTH // 4 + 2)))
    builder.add("z", Reduce(kind=ReduceKind.SUM, x="large", axes=(1,)))
    graph = builder.graph(("y", "z"))
    assert kinds(changed(fold_constants, graph)) == ["Dequantize", "MatMul", "Expand", "Reduce"]
    assert kinds(changed(fold_dequantized, graph)) == ["MatMul", "Expand", "Reduce"]


def test_results_in_all_have_a_limit(monkeypatch):
    monkeypatch.setattr("microtron.compiler.passes.fold_constants.MOST_IN_ALL", 1000)
    builder = with_input((10,), "float32")
    builder.constant("one", reals(1))
    last = "x"
    for number in range(100):                       # 40 bytes each
        builder.add(f"e{number}", Expand(x="one", shape=(10,)))
        last = builder.add(f"s{number}", Binary(kind=BinaryKind.ADD, left=last,
                                                right=f"e{number}"))
    found = changed(fold_constants, builder.graph((last,)))
    assert kinds(found).count("Expand") == 100 - (1000 + 8 * 4) // 40


def test_a_constant_that_cannot_be_computed_is_named():
    builder = with_input((2, 3), "float32")
    builder.constant("c", reals(2, 3))
    builder.constant("i", np.array([5]))
    builder.add("g", Gather(x="c", indices="i"), origin="layer/gather")
    builder.add("y", Binary(kind=BinaryKind.ADD, left="x", right="g"))
    with pytest.raises(GraphError, match="layer/gather: gather: an index is 5, but the axis has"):
        fold_constants(builder.graph(("y",)))


def test_what_numpy_refuses_is_named_too():
    builder = with_input((3, 9), "float32")
    builder.constant("c", reals(1, 3))
    builder.add("p", Pad(x="c", before=(2, 3), after=(0, 3), mode=PadMode.REFLECT))
    builder.constant("empty", reals(0, 9))
    builder.add("q", Pad(x="empty", before=(3, 0), after=(0, 0), mode=PadMode.EDGE))
    builder.add("y", Binary(kind=BinaryKind.ADD, left="x", right="q"))
    with pytest.raises(GraphError, match="q: pad: can't extend empty axis"):
        fold_constants(builder.graph(("y",)))


def normalized(layer: str, *, bias: bool, low: float | None = None, both: bool = False):
    """A batch normalization after a layer."""
    axis = 1 if layer != "dense" else -1
    builder = with_input((2, 4, 5, 5) if layer != "dense" else (3, 4), "float32")
    if bias:
        builder.constant("b", reals(6))
    common = {"bias": "b" if bias else None, "low": low}
    if layer == "dense":
        builder.constant("w", reals(4, 6))
        builder.add("a", MatMul(left="x", right="w", **common))
    else:
        builder.constant("w", reals(6, 2, 3, 3))
        kind = Conv if layer == "conv" else TransposedConv
        builder.add("a", kind(x="x", weights="w", groups=2, channel_axis=1, **common))
    for name in ("scale", "shift", "mean"):
        builder.constant(name, reals(6))
    builder.constant("variance", np.abs(reals(6)))
    builder.add("y", BatchNorm(x="a", scale="scale", bias="shift", mean="mean",
                               variance="variance", channel_axis=axis))
    return builder.graph(("y", "a") if both else ("y",))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layer", ["conv", "transposed", "dense"])
def test_a_normalization_goes_into_the_weights(layer, bias):
    found = changed(fold_batch_norm, normalized(layer, bias=bias), tolerance=1e-4)
    assert kinds(found) == [{"conv": "Conv", "transposed": "TransposedConv",
                             "dense": "MatMul"}[layer]]


def test_a_normalization_by_nothing_stays_nothing():
    graph = normalized("conv", bias=True)
    constants = {**graph.constants, "variance": Constant(
        graph.type_of("variance"), np.full(6, -1, np.float32))}
    found = changed(fold_batch_norm, replace(graph, constants=constants), tolerance=1e-4)
    assert np.isnan(found.array("y.weights")).all()


@pytest.mark.parametrize("options", [{"low": 0.0}, {"both": True}])
def test_a_normalization_that_cannot_is_a_product_and_a_sum(options):
    graph = normalized("conv", bias=True, **options)
    assert kinds(changed(fold_batch_norm, graph, tolerance=1e-4)) == ["Conv", "Binary", "Binary"]


@pytest.mark.parametrize(("axis", "constant"), [(2, True), (1, False)])
def test_a_normalization_of_rows_or_after_unknown_weights_is_a_product_and_a_sum(axis, constant):
    builder = with_input((1, 2, 6, 6), "float32")
    if constant:
        builder.constant("w", reals(6, 2, 1, 1))
    else:
        builder.input("w", TensorType((6, 2, 1, 1), "float32"))
    builder.add("a", Conv(x="x", weights="w", channel_axis=1))
    for name in ("scale", "shift", "mean"):
        builder.constant(name, reals(6))
    builder.constant("variance", np.abs(reals(6)))
    builder.add("y", BatchNorm(x="a", scale="scale", bias="shift", mean="mean",
                               variance="variance", channel_axis=axis))
    found = changed(fold_batch_norm, builder.graph(("y",)), tolerance=1e-4)
    assert kinds(found) == ["Conv", "Binary", "Binary"]


def padded(operation, value=3, mode=PadMode.CONSTANT, before=(0, 0, 1, 2), dtype="int8"):
    builder = with_input((1, 2, 5, 6), dtype)
    known = KNOWN if dtype == "int8" else None
    builder.constant("w", RNG.integers(-9, 9, (3, 2, 3, 3)).astype(dtype))
    builder.add("p", Pad(x="x", before=before, after=(0, 0, 0, 1), value=value, mode=mode),
                quantization=known)
    builder.add("y", replace(operation, channel_axis=1),
                quantization=known if isinstance(operation, Pool) else None)
    return builder.graph(("y",))


CONV = Conv(x="p", weights="w", pad=(1, 0, 0, 1))
MAX = Pool(x="p", kind=PoolKind.MAX, kernel=(3, 3), pad=(1, 0, 0, 1))
MEAN = Pool(x="p", kind=PoolKind.AVERAGE, kernel=(4, 3))


@pytest.mark.parametrize(("operation", "value", "dtype"), [
    (CONV, 3, "int8"), (CONV, 0, "float32"), (MAX, -128, "int8"), (MAX, -np.inf, "float32"),
    (MEAN, 3, "int8"), (MEAN, 0, "float32"), (replace(MEAN, raw=True), 0, "int8"),
    (replace(MEAN, pad=(1, 1, 0, 1), count_include_pad=True), 3, "int8")])
def test_a_border_goes_into_the_window(operation, value, dtype):
    found = changed(fold_pad, padded(operation, value, dtype=dtype), tolerance=(
        1e-4 if dtype == "float32" else 0))
    [y] = [node.operation for node in found.nodes.values() if not isinstance(node.operation, Pad)]
    top, bottom, left, right = operation.pad
    assert (y.x, y.pad) == ("x", (top + 1, bottom, left + 2, right + 1))


@pytest.mark.parametrize(("operation", "options"), [
    (CONV, {"value": 0}), (MAX, {"value": 3}), (MEAN, {"value": 0}),
    (CONV, {"mode": PadMode.EDGE}), (CONV, {"before": (1, 0, 0, 0)}),
    (replace(MEAN, raw=True), {}), (replace(MEAN, pad=(1, 1, 1, 1)), {}),
    (replace(MEAN, kernel=(1, 1)), {})])
def test_a_border_that_means_something_else_stays(operation, options):
    graph = padded(operation, **options)
    assert str(changed(fold_pad, graph)) == str(graph)


@pytest.mark.parametrize(("first", "second", "both"), [
    ((None, None), (0, None), (0, None)), ((-5, 50), (0, 90), (0, 50)), ((10, 20), (-9, 5), (5, 5)),
    ((None, 20), (30, None), (30, 30)), ((-128, None), (None, 127), (None, None))])
def test_a_clamp_goes_into_what_it_reads(first, second, both):
    builder = with_input((4, 60))
    builder.add("a", Rescale(x="x", low=first[0], high=first[1]), dtype="int8",
                quantization=Quantization((0.2,), (-4,)))
    builder.add("y", Clamp(x="a", low=second[0], high=second[1]),
                quantization=Quantization((0.2,), (-4,)))
    found = changed(fuse_clamp, builder.graph(("y",)))
    [node] = found.nodes.values()
    assert (type(node.operation), node.operation.low, node.operation.high) == (Rescale, *both)


def test_a_clamp_stays_if_others_read_what_it_reads():
    builder = with_input((4, 60), "float32")
    builder.add("a", Binary(kind=BinaryKind.ADD, left="x", right="x"))
    builder.add("y", Clamp(x="a", low=0.5))
    builder.add("z", Clamp(x="y", high=0.75))
    assert kinds(changed(fuse_clamp, builder.graph(("z",)))) == ["Binary"]
    assert kinds(changed(fuse_clamp, builder.graph(("z", "a")))) == ["Binary", "Clamp"]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [(2, 3), (-3, -2)])
@pytest.mark.parametrize("kind", [ReduceKind.MEAN, ReduceKind.MAX])
def test_a_mean_over_images_is_a_pool(kind, axes, keep):
    builder = with_input((2, 3, 4, 5))
    after = Quantization((0.2,), (5,)) if kind == ReduceKind.MEAN else KNOWN
    scales = (0.5 / (0.2 * 20),) if kind == ReduceKind.MEAN else ()
    builder.add("y", Reduce(kind=kind, x="x", axes=axes, keep=keep, scales=scales, low=-50),
                quantization=after)
    found = changed(normalize, builder.graph(("y",)))
    assert kinds(found) == (["Pool"] if keep else ["Pool", "Reshape"])


@pytest.mark.parametrize(("channels", "axis", "kernel"), [
    (1, 2, (4, 1)), (1, 3, (1, 5)), (3, 1, (3, 1)), (3, 2, (1, 4))])
def test_a_mean_over_rows_of_images_is_a_pool(channels, axis, kernel):
    """Over channels it is none."""
    builder = with_input((2, 3, 4, 5))
    builder.add("pool", Pool(x="x", kind=PoolKind.MAX, kernel=(1, 1), channel_axis=channels),
                quantization=KNOWN)
    for name, along in (("y", axis), ("z", channels)):
        builder.add(name, Reduce(kind=ReduceKind.MEAN, x="pool", axes=(along,), scales=(0.5,)),
                    quantization=KNOWN)
    found = changed(normalize, builder.graph(("y", "z")))
    assert kinds(found)[1:] == ["Pool", "Reshape", "Reduce"]
    assert [each.operation.kernel for each in found.nodes.values()
            if isinstance(each.operation, Pool)] == [(1, 1), kernel]


@pytest.mark.parametrize("sides", [(1, 1), (1, 2)])
def test_one_pixel_is_repeated(sides):
    builder = with_input((1, 3, *sides))
    builder.add("y", Resize(x="x", shape=(1, 3, 4, 6), kind=ResizeKind.LINEAR),
                quantization=KNOWN)
    found = changed(normalize, builder.graph(("y",)))
    assert (found.nodes["y"].operation.kind == ResizeKind.NEAREST) == (sides == (1, 1))


def tflite_mean(sides, ratio, zeros=(3, 3), shape=None):
    """A mean as TFLite computes it, of images with their channels last."""
    count = sides[0] * sides[1]
    multiplier, right = quantize_scale(ratio)
    more = count.bit_length() - 1
    builder = with_input(shape or (2, *sides, 3), quantization=Quantization((0.5,), zeros[:1]))
    builder.add("y", FixedPointReduce(x="x", axes=(1, 2), multiplier=(multiplier << more) // count,
                                      shift=right + more),
                quantization=Quantization((0.5 / ratio,), zeros[1:]))
    return builder.graph(("y",))


@pytest.mark.parametrize("sides", [(1, 1), (4, 4), (8, 2)])
def test_tflite_s_mean_over_a_power_of_two_is_a_pool(sides):
    found = changed(normalize, tflite_mean(sides, 1.37))
    assert kinds(found) == ["Pool", "Reshape"]


def test_tflite_s_mean_is_a_pool_only_if_all_sums_agree():
    """An image for each sum that 7 × 7 pixels can have, at several scales: some means become a
    pool and some do not, and none that does differs anywhere."""
    each, rest = np.divmod(np.arange(49 * 255 + 1), 49)
    pixels = each[:, None] + (np.arange(49) < rest[:, None]) - 128
    given = {"x": pixels.astype(np.int8).reshape(-1, 7, 7, 1)}
    became = set()
    for ratio in (1.1, 1.5515, 1.6, 1.792):
        graph = tflite_mean((7, 7), ratio, (-128, -128), given["x"].shape)
        found = normalize(graph)
        became.add(kinds(found)[0])
        assert (evaluate(found, given)["y"] == evaluate(graph, given)["y"]).all()
    assert became == {"Pool", "FixedPointReduce"}


def test_a_mean_of_something_else_stays():
    builder = with_input((2, 3, 4, 5), "int32")
    builder.add("y", Reduce(kind=ReduceKind.MEAN, x="x", axes=(2, 3)))
    builder.add("z", Reduce(kind=ReduceKind.MAX, x="x", axes=(0, 3)))
    assert kinds(changed(normalize, builder.graph(("y", "z")))) == ["Reduce", "Reduce"]


@pytest.mark.parametrize("scale", [1e8, 2.0 ** 31 / 25])
def test_a_mean_whose_scale_a_pool_cannot_have_stays(scale):
    builder = with_input((1, 2, 5, 5))
    builder.add("y", Reduce(kind=ReduceKind.MEAN, x="x", axes=(2, 3), scales=(scale,)),
                quantization=KNOWN)
    assert kinds(changed(normalize, builder.graph(("y",)))) == ["Reduce"]


def test_a_sum_of_nothing_stays():
    builder = with_input((1, 2, 0, 5))
    builder.add("y", Reduce(kind=ReduceKind.SUM, x="x", axes=(2, 3), scales=(0.5,)),
                quantization=KNOWN)
    assert kinds(changed(normalize, builder.graph(("y",)))) == ["Reduce"]


def test_constants_are_on_the_right_and_weights_are_flat():
    builder = with_input((2, 3, 4))
    builder.constant("c", np.arange(4, dtype=np.int8).reshape(1, 1, 4), KNOWN)
    builder.constant("w", RNG.integers(-9, 9, (1, 4, 2)).astype(np.int8),
                     Quantization((0.5, 0.25), axis=2))
    builder.add("a", Binary(kind=BinaryKind.ADD, left="c", right="x"), quantization=KNOWN)
    builder.add("b", Binary(kind=BinaryKind.SUB, left="c", right="a"), quantization=KNOWN)
    builder.add("y", MatMul(left="b", right="w"))
    found = changed(normalize, builder.graph(("y",)))
    assert [found.nodes[name].operation.left for name in "ab"] == ["x", "c"]
    assert found.type_of(found.nodes["y"].operation.right) == TensorType(
        (4, 2), "int8", Quantization((0.5, 0.25), axis=1))


@pytest.mark.parametrize(("left", "right", "constant"), [
    ((2, 3, 4), (4, 2), True), ((3, 4), (1, 4, 2), True), ((2, 3, 4), (2, 4, 2), True),
    ((2, 3, 4), (1, 4, 2), False)])
def test_other_matrices_stay(left, right, constant):
    builder = with_input(left, "float32")
    if constant:
        builder.constant("w", reals(*right))
    else:
        builder.input("w", TensorType(right, "float32"))
    builder.add("y", MatMul(left="x", right="w"))
    found = changed(normalize, builder.graph(("y",)), tolerance=1e-5)
    assert found.nodes["y"].operation.right == "w"


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 2, 1), (0, 3, 1, 2), (0, 1, 3, 2)])
@pytest.mark.parametrize("scales", [(0.1,), (0.1, 0.2, 0.3, 0.4, 0.5)])
def test_weights_are_moved_instead_of_what_they_are_multiplied_with(order, scales):
    builder = with_input((2, 3, 4, 5))
    moved = builder.add("moved", Transpose(x="x", order=order))
    flat = builder.add("flat", Reshape(x=moved, shape=(2, 60)))
    known = Quantization(scales, (0,), 1 if len(scales) > 1 else None)
    builder.constant("w", RNG.integers(-128, 128, (60, 5)).astype(np.int8), known)
    builder.add("y", MatMul(left=flat, right="w", scales=tuple(each / 90 for each in scales)),
                dtype="int8", quantization=Quantization((0.7,), (-5,)))
    found = remove_dead(changed(fold_transpose, builder.graph(("y",))))
    assert kinds(found) == ["Reshape", "MatMul"]


@pytest.mark.parametrize(("shape", "order", "flat"), [
    ((2, 3, 4, 5), (1, 2, 3, 0), (3, 40)),          # images and rows are exchanged
    ((2, 3, 4, 5), (0, 2, 3, 1), (8, 15))])         # several rows of an image
def test_a_transpose_that_is_not_inside_of_rows_stays(shape, order, flat):
    builder = with_input(shape)
    builder.add("moved", Transpose(x="x", order=order))
    builder.add("flat", Reshape(x="moved", shape=flat))
    builder.constant("w", RNG.integers(-9, 9, (flat[1], 5)).astype(np.int8), Quantization((0.1,)))
    builder.add("y", MatMul(left="flat", right="w"), dtype="int32")
    graph = builder.graph(("y",))
    assert str(changed(fold_transpose, graph)) == str(graph)


@pytest.mark.parametrize(("sides", "coordinates", "kind"), [
    ((10, 6), Coordinates.HALF_PIXEL, "Upsample"),
    ((20, 3), Coordinates.HALF_PIXEL, "Upsample"),
    ((10, 6), Coordinates.ASYMMETRIC, "Upsample"),
    ((10, 6), Coordinates.ALIGN_CORNERS, "FixedPointResize"),
    ((15, 9), Coordinates.ASYMMETRIC, "FixedPointResize"),      # thirds are no 1024ths
    ((40, 24), Coordinates.HALF_PIXEL, "FixedPointResize"),     # weights of more than 8 bits
    ((9, 6), Coordinates.HALF_PIXEL, "FixedPointResize")])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_resizes_of_tflite_whose_weights_are_exact(sides, coordinates, kind, dtype):
    builder = Builder()
    builder.input("x", TensorType((2, 5, 3, 4), dtype, Quantization((0.1,), (7,))))
    builder.add("y", FixedPointResize(x="x", sides=sides, coordinates=coordinates))
    found = changed(normalize, builder.graph(("y",)))
    assert kinds(found) == [kind if dtype == "int8" else "FixedPointResize"]
