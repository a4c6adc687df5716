"""What is real only between Dequantize and Quantize is computed with integers."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.layers.reduction import Reduce, ReduceKind
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Clamp, Dequantize, Quantize
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.operations.vision.resize import Coordinates, Resize, ResizeKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.graph.verify_graph import verify_graph
from microtron.compiler.passes.integer_moves import integer_moves
from microtron.compiler.passes.integer_operators import integer_operators
from microtron.compiler.passes.remove_dead import remove_dead

from .checks import changed, kinds

SHAPE = (2, 4, 6, 5)
KNOWN = Quantization((0.04,), (3,))


class Network:
    """A graph with an input x of integers and the real numbers r that it stands for."""

    def __init__(self, seed=0, dtype="int8", shape=SHAPE, known=KNOWN):
        self.rng = np.random.default_rng(seed)
        self.builder = Builder()
        self.builder.input("x", TensorType(shape, dtype, known))
        self.add("r", Dequantize(x="x"))

    def add(self, name, operation, **settings):
        return self.builder.add(name, operation, **settings)

    def weights(self, *shape, axis=0, scales=None, zero=0):
        """Real weights that integers stand for, with a scale for each output."""
        count = shape[axis] if scales is None else scales
        known = Quantization(tuple(self.rng.uniform(0.002, 0.02, count).tolist()), (zero,),
                             axis if count > 1 else None)
        stored = self.builder.constant("w", self.rng.integers(-128, 128, shape).astype(np.int8),
                                       known)
        return self.add("w.real", Dequantize(x=stored)), np.asarray(known.scales)

    def quantized(self, name, known=None, dtype="int8"):
        """A graph whose result y is a tensor as integers, with a scale that uses their range."""
        graph = self.builder.graph((name,))
        if known is None:
            inputs = random_integers(graph, 0)
            reach = float(np.abs(evaluate(graph, inputs)[name]).max())
            known = Quantization((max(reach, 1e-3) / 120,), (5,))
        self.add("y", Quantize(x=name), dtype=dtype, quantization=known)
        return self.builder.graph(("y",))


def random_integers(graph, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(*type_.range, type_.shape, endpoint=True).astype(type_.dtype)
            for name, type_ in graph.inputs.items()}


def within_a_step(graph, *expected, different=0.02):
    """Both passes leave these operations, and results that differ by one step at most, which few
    do."""
    found = remove_dead(integer_operators(integer_moves(graph)))
    verify_graph(found)
    assert kinds(found) == list(expected)
    assert found.type_of("y") == graph.type_of("y")
    for seed in range(3):
        inputs = random_integers(graph, seed)
        right, got = (evaluate(each, inputs)["y"].astype(int) for each in (graph, found))
        assert np.abs(got - right).max(initial=0) <= 1
        assert (got != right).mean() <= different
        assert len(np.unique(right)) > 5, "the test looks at numbers that differ"
    return found


@pytest.mark.parametrize("bias", ["none", "int32", "other", "real"])
@pytest.mark.parametrize("groups", [1, 4])
def test_convolutions(bias, groups):
    network = Network(known=Quantization((0.04,), (-7,)))
    weights, scales = network.weights(8, 4 // groups, 3, 3)
    if bias == "real":
        network.builder.constant("b", network.rng.normal(size=8).astype(np.float32))
    elif bias != "none":
        unit = 0.04 * scales if bias == "int32" else np.full(8, 1e-3)
        stored = network.builder.constant("bq", network.rng.integers(-900, 900, 8).astype(np.int32),
                                          Quantization(tuple(unit.tolist()), (0,), 0))
        network.add("b", Dequantize(x=stored))
    network.add("c", Conv(x="r", weights=weights, bias=None if bias == "none" else "b",
                          groups=groups, pad=(1, 0, 1, 2), channel_axis=1))
    network.add("relu", Clamp(x="c", low=0, high=3.3))
    found = within_a_step(network.quantized("relu"), "Conv", "Clamp")
    assert found.nodes["y"].operation.low == 5
    conv = next(iter(found.nodes.values())).operation
    assert len(conv.scales) == 8
    if bias == "int32":
        assert (found.array(conv.bias) == network.builder.array("bq")).all()


def test_transposed_convolutions():
    network = Network()
    weights, _ = network.weights(3, 4, 2, 2, scales=1, zero=9)
    network.add("c", TransposedConv(x="r", weights=weights, stride=(2, 2), channel_axis=1))
    within_a_step(network.quantized("c"), "TransposedConv")


@pytest.mark.parametrize("added", [None, "bias", "sum", "before"])
def test_matrix_products(added):
    network = Network(shape=(3, 20))
    weights, _ = network.weights(20, 7, axis=1)
    bias = network.builder.constant("b", network.rng.normal(size=7).astype(np.float32))
    network.add("m", MatMul(left="r", right=weights, bias=bias if added == "bias" else None))
    summed = added in ("sum", "before")
    if summed:
        left, right = ("m", bias) if added == "sum" else (bias, "m")
        network.add("s", Binary(kind=BinaryKind.ADD, left=left, right=right))
    found = within_a_step(network.quantized("s" if summed else "m"), "MatMul")
    assert (found.nodes["y"].operation.bias is None) == (added is None)


def test_products_of_activations():
    network = Network(shape=(2, 4, 8))
    network.add("t", Transpose(x="r", order=(0, 2, 1)))
    network.add("m", MatMul(left="r", right="t"))
    within_a_step(network.quantized("m"), "Transpose", "MatMul")


@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
def test_sums_and_products(kind):
    network = Network()
    network.builder.input("z", TensorType((4, 1, 1), "int8", Quantization((0.013,), (-50,))))
    network.add("other", Dequantize(x="z"))
    network.add("s", Binary(kind=BinaryKind(kind), left="r", right="other"))
    within_a_step(network.quantized("s"), "Binary")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
@pytest.mark.parametrize("reach", [0.01, 1, 99])
def test_a_real_constant_stays_as_it_is(kind, dtype, reach):
    network = Network(dtype=dtype)
    values = network.rng.uniform(-reach, reach, (4, 1, 1)).astype(np.float32)
    network.builder.constant("c", values)
    network.add("s", Binary(kind=BinaryKind(kind), left="r", right="c"))
    within_a_step(network.quantized("s", dtype=dtype), "Dequantize", "Binary", "Quantize",
                  different=0)


EXACT = {           # by kind of operator: the real result of x and z, and the bound in steps
    "MatMul": (lambda x, z: x @ z, lambda ratio: 2.0 ** -22),
    "mul": (lambda x, z: x * z, lambda ratio: 2.0 ** -22),
    "add": (lambda x, z: x + z, lambda ratio: 2.0 ** -18 * ratio),
    "sub": (lambda x, z: x - z, lambda ratio: 2.0 ** -18 * ratio),
    "mean": (lambda x, z: x.mean(-1), lambda ratio: 2.0 ** -22),
    "rescale": (lambda x, z: x, lambda ratio: 2.0 ** -22)}


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("seed", range(6))
def test_results_are_as_near_to_the_exact_ones_as_the_page_promises(kind, seed):
    """The exact ones in double precision, whose own error is far below."""
    rng = np.random.default_rng(seed)
    known = [Quantization((float(np.float32(rng.uniform(0.01, 0.3))),),
                          (int(rng.integers(-90, 90)),)) for _ in range(3)]
    network = Network(shape=(40, 40), known=known[0])
    network.builder.input("z", TensorType((40, 40), "int8", known[1]))
    network.add("other", Dequantize(x="z"))
    real = "r"
    if kind == "MatMul":
        real = network.add("s", MatMul(left="r", right="other"))
    elif kind == "mean":
        real = network.add("s", Reduce(kind=ReduceKind.MEAN, x="r", axes=(1,)))
    elif kind != "rescale":
        real = network.add("s", Binary(kind=BinaryKind(kind), left="r", right="other"))
    exact, bound = EXACT[kind]
    graph = network.quantized(real, known[2] if kind in ("add", "sub", "rescale") else None)
    inputs = random_integers(graph, seed)
    x, z = ((inputs[name].astype(np.float64) - each.zero_point) * each.scale
            for name, each in (("x", known[0]), ("z", known[1])))
    result = graph.type_of("y").require_quantization()
    steps = exact(x, z) / result.scale + result.zero_point
    found = evaluate(integer_operators(integer_moves(graph)), inputs)["y"].astype(np.float64)
    inside = (steps > -128) & (steps < 127)
    ratio = max(each.scale for each in known) / result.scale
    assert inside.mean() > 0.03
    assert np.abs(found - steps)[inside].max() <= 0.5 + bound(ratio)


@pytest.mark.parametrize("operation", [
    Pool(x="r", kind=PoolKind.AVERAGE, kernel=(3, 2), stride=(2, 1), pad=(1, 1, 0, 0),
         channel_axis=1),
    Reduce(kind=ReduceKind.MEAN, x="r", axes=(2, 3)),
    Reduce(kind=ReduceKind.SUM, x="r", axes=(-1,), keep=True)], ids=["pool", "mean", "sum"])
def test_averages(operation):
    network = Network()
    network.add("a", operation)
    within_a_step(network.quantized("a"), type(operation).__name__)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_function_of_one_tensor_is_a_table_to_the_bit(dtype):
    """x × clip(x / 6 + 0.5, 0, 1), as some models write hardswish."""
    network = Network(dtype=dtype)
    six = network.builder.constant("six", np.float32(6))
    known = network.builder.constant("half.stored", np.int8([64]), Quantization((1 / 128,)))
    network.add("half", Dequantize(x=known))
    network.add("d", Binary(kind=BinaryKind.DIV, left="r", right=six))
    network.add("e", Binary(kind=BinaryKind.ADD, left="d", right="half"))
    network.add("f", Clamp(x="e", low=0, high=1))
    network.add("h", Binary(kind=BinaryKind.MUL, left="r", right="f"))
    found = within_a_step(network.quantized("h"), "Lookup", different=0)
    assert found.nodes["y"].operation.x == "x"


def test_a_change_of_scale_is_a_rescale_and_none_is_nothing():
    graph = Network().quantized("r", Quantization((0.07,), (-9,)))
    within_a_step(graph, "Rescale")
    network = Network(shape=(30, 8))
    network.add("q", Quantize(x="r"), quantization=KNOWN)
    network.add("s", Dequantize(x="q"))
    network.add("m", Reduce(kind=ReduceKind.SUM, x="s", axes=(1,)))
    within_a_step(network.quantized("m", different_scale()), "Reduce", different=0.5)


def different_scale():
    return Quantization((0.31,), (2,))


def test_what_has_no_integer_form_stays_real():
    network = Network(shape=(3, 9))
    network.add("s", Softmax(x="r"))
    within_a_step(network.quantized("s", Quantization((1 / 256,), (-128,))), "Dequantize",
                  "Softmax", "Quantize", different=0)


def test_a_real_result_that_something_else_reads_stays():
    network = Network()
    weights, _ = network.weights(8, 4, 3, 3)
    network.add("c", Conv(x="r", weights=weights, channel_axis=1))
    network.add("y", Quantize(x="c"), quantization=Quantization((1.0,)))
    graph = network.builder.graph(("y", "c"))
    assert kinds(integer_operators(integer_moves(graph))) == kinds(graph)


@pytest.mark.parametrize(("bias", "scale", "moves"), [
    (0.4, 0.5, 0.8), (0.2, 2, 0.1), (0.2, 2.5, 0.08), (0.2, 3.3, 0.0607), (7.5, 9, 0.0556),
    (7.0, 0.1, 0)])
def test_a_bias_is_rounded_only_where_that_moves_results_by_little(bias, scale, moves):
    """The unit of the products is 1, so the bias is rounded to a whole number."""
    network = Network(shape=(3, 4), known=Quantization((1.0,)))
    stored = network.builder.constant("w", np.eye(4).astype(np.int8), Quantization((1.0,)))
    network.add("w.real", Dequantize(x=stored))
    constant = network.builder.constant("b", np.full(4, bias, np.float32))
    network.add("m", MatMul(left="r", right="w.real", bias=constant))
    graph = network.quantized("m", Quantization((scale,)))
    assert abs(bias - round(bias)) / scale == pytest.approx(moves, abs=1e-3)
    found = kinds(remove_dead(integer_operators(graph)))
    assert found == (["MatMul"] if moves <= 1 / 16 else kinds(graph))


@pytest.mark.parametrize(("shape", "coordinates", "kind"), [
    ((2, 4, 12, 10), Coordinates.HALF_PIXEL, "Upsample"),
    ((2, 4, 6, 10), Coordinates.PYTORCH_HALF_PIXEL, "Upsample"),
    ((2, 4, 18, 15), Coordinates.ASYMMETRIC, "Upsample"),
    ((2, 4, 12, 10), Coordinates.ALIGN_CORNERS, ""),
    ((2, 4, 48, 40), Coordinates.HALF_PIXEL, ""),           # its weights need more bits
    ((2, 4, 12, 9), Coordinates.HALF_PIXEL, ""),
    ((2, 8, 12, 10), Coordinates.HALF_PIXEL, "")])
def test_bilinear_resizes_by_whole_numbers(shape, coordinates, kind):
    network = Network()
    network.add("m", Resize(x="r", shape=shape, kind=ResizeKind.LINEAR, coordinates=coordinates))
    graph = network.quantized("m", KNOWN)
    if kind:
        found = within_a_step(graph, kind, different=0.1)      # one of 16 results lies at a tie
        assert found.nodes["y"].operation.channel_axis == 1
    else:
        assert kinds(remove_dead(integer_operators(graph))) == kinds(graph)


MOVES = [
    (Reshape(x="r", shape=(8, 30)), "Reshape"),
    (Transpose(x="r", order=(0, 2, 3, 1)), "Transpose"),
    (Slice(x="r", starts=(0, 1, 0, 0), stops=(2, 3, 6, 5), steps=(1, 1, 2, 1)), "Slice"),
    (Pad(x="r", before=(0, 0, 1, 0), after=(0, 0, 0, 2)), "Pad"),
    (Gather(x="r", indices="i", axis=1), "Gather"),
    (Resize(x="r", shape=(2, 4, 12, 5)), "Resize"),
    (Pool(x="r", kind=PoolKind.MAX, kernel=(2, 2), channel_axis=1), "Pool"),
    (Reduce(kind=ReduceKind.MAX, x="r", axes=(3,)), "Reduce"),
    (Binary(kind=BinaryKind.MAX, left="r", right="r"), "Binary"),
    (Concat(parts=("r", "r"), axis=1), "Concat")]


@pytest.mark.parametrize(("operation", "kind"), MOVES, ids=[each for _, each in MOVES])
def test_moves_are_moves_of_integers_to_the_bit(operation, kind):
    def network():
        made = Network()
        made.builder.constant("i", np.array([2, 0]))
        return made

    after = network()
    after.add("real", Unary(kind=UnaryKind.SIN, x="r"))
    after.add("m", operation.rename_operands(lambda each: "real" if each == "r" else each))
    found = changed(integer_moves, after.quantized("m", Quantization((0.008,), (1,))))
    assert set(kinds(found)[-2:]) == {"Quantize", kind}
    assert kinds(found)[-1] == kind
    before = network()
    before.add("m", operation)
    before.add("s", Unary(kind=UnaryKind.SIN, x="m"))
    found = changed(integer_moves, before.builder.graph(("s",)))
    assert kinds(found) == ["Dequantize", kind, "Dequantize", "Unary"]


def test_of_several_quantize_that_do_the_same_one_stays():
    network = Network()
    weights, _ = network.weights(8, 4, 3, 3)
    network.add("c", Conv(x="r", weights=weights, channel_axis=1))
    for name in "ab":
        network.add(name, Quantize(x="c"), quantization=Quantization((0.2,)))
        network.add(f"{name}.real", Dequantize(x=name))
    network.add("s", Binary(kind=BinaryKind.ADD, left="a.real", right="b.real"))
    within_a_step(network.quantized("s", Quantization((0.4,), (1,))), "Conv", "Binary")


def test_parts_with_other_scales_are_rescaled_before_they_are_joined():
    network = Network()
    network.builder.input("z", TensorType(SHAPE, "int8", Quantization((0.013,), (-50,))))
    network.add("other", Dequantize(x="z"))
    network.add("c", Concat(parts=("r", "other"), axis=1))
    within_a_step(network.quantized("c"), "Rescale", "Rescale", "Concat")


def test_a_border_that_no_integer_stands_for_waits_for_quantize():
    network = Network()
    network.add("p", Pad(x="r", before=(0, 0, 1, 0), after=(0,) * 4, value=0.33))
    graph = network.builder.graph(("p",))
    assert kinds(integer_moves(graph)) == kinds(graph)
    found = within_a_step(network.quantized("p", different_scale()), "Rescale", "Pad")
    assert found.nodes["y"].operation.value == 3


def test_a_move_that_something_else_reads_stays_before_its_quantize():
    network = Network()
    network.add("s", Unary(kind=UnaryKind.SIN, x="r"))
    network.add("t", Reshape(x="s", shape=(8, 30)))
    network.add("y", Quantize(x="t"), quantization=Quantization((0.01,)))
    graph = network.builder.graph(("y", "t"))
    assert kinds(integer_moves(graph)) == kinds(graph)
