"""Models and options that are odd: handled, or refused in a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Constant
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import LocalResponseNorm
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.unary import Cast
from microtron.compiler.graph.types import TensorType
from microtron.quantization.report import IntegerModel

from .float_graphs import samples_for, small_network

GRAPH = small_network()
SAMPLES = samples_for(GRAPH, 3)
SCORES = replace(GRAPH, outputs=("scores",))
QUICK = {"method": "minmax", "techniques": ()}


def changed(name, change):
    """The network with a constant that a function makes of its own."""
    known = GRAPH.constants[name]
    array = np.asarray(change(known.array.copy()), np.float32)
    return replace(GRAPH, constants={**GRAPH.constants, name: Constant(known.type, array)})


def put(array, value):
    array.flat[5] = value
    return array


@pytest.mark.parametrize(("graph", "options", "message"), [
    (changed("w", lambda w: put(w, np.nan)), {}, r"^w, which conv\S* reads, is nan at \(1, 1, 0"),
    (changed("matrix", lambda w: put(w, np.inf)), {}, r"^matrix, which scores reads, is inf"),
    (GRAPH, {"techniques": None}, "techniques is None, but must be a list of names"),
    (GRAPH, {"techniques": "round"}, "techniques is 'round', but must be a list of names"),
    (GRAPH, {"method": None}, "method is None, but must be one of best, minmax"),
    (GRAPH, {"weight_bits": 8.0}, "weight_bits is 8.0, but must be 4 or 8"),
    (GRAPH, {"random_data": "yes"}, "random_data is 'yes', but must be True or False"),
    (GRAPH, {"keep_float": ["convv"]}, "there is no layer convv; layers are conv, scores"),
    (GRAPH, {"keep_float": ["conv", "scores"]}, "has no convolution or matrix product"),
    (GRAPH, {"labels": [0, 1, 2]}, "labels are for models with one output, but there are 2"),
    (SCORES, {"labels": [0, 1, 5]}, "labels have 5, but scores has classes from 0 to 4"),
    (SCORES, {"labels": [0, -1, 5]}, "labels have -1, but scores has classes"),
    (SCORES, {"labels": [0.5, 1, 1]}, "labels are float64"),
    (SCORES, {"labels": [0, 1]}, "there are 2 labels, but 3 samples"),
    (SCORES, {"labels": [0, 1, 2, 3]}, "there are 4 labels, but 3 samples"),
    (SCORES, {"max_loss": 0}, "max_loss is 0, which would need all 2 layers in float"),
])
def test_what_means_nothing_is_refused_in_a_line(graph, options, message):
    with pytest.raises(MicrotronError, match=message) as caught:
        microtron.quantize(graph, SAMPLES, **{**QUICK, **options})
    assert "\n" not in str(caught.value)


def test_numbers_of_64_bits_are_refused_with_what_to_do():
    made = Builder("wide")
    x = made.input("x", TensorType((2, 4), "float64"))
    y = made.add("y", MatMul(left=x, right=made.constant("w", np.eye(4))))
    with pytest.raises(MicrotronError, match="wide: y has numbers of 64 bits; export"):
        microtron.quantize(made.graph((y,)), [{"x": np.ones((2, 4))}], **QUICK)


@pytest.mark.parametrize("as_given", [list, iter])
def test_a_sample_without_an_input_is_named(as_given):
    samples = [{"x": SAMPLES[0]["x"]}, {"x": SAMPLES[0]["x"], "z": SAMPLES[0]["x"]}]
    with pytest.raises(MicrotronError, match="the samples, sample 1: it has z, but the inputs"):
        microtron.quantize(GRAPH, as_given(samples), **QUICK)


def test_a_misspelt_option_is_refused_with_the_nearest_name():
    with pytest.raises(TypeError, match=r"technique.*techniques"):
        microtron.quantize(GRAPH, SAMPLES, technique=())


@pytest.mark.parametrize("size", [0, 1e-40, 1e-12, 1e30])
def test_numbers_of_any_size_are_no_trouble(size):
    """Sums may overflow, and steps underflow: neither a warning nor a NaN comes out."""
    samples = [{"x": (size * np.sign(each["x"])).astype(np.float32)} for each in SAMPLES]
    found = microtron.quantize(GRAPH, samples)
    assert all(np.isfinite(value) for value in found.report.outputs.values())
    assert all(np.isfinite(each.sqnr) for each in found.report.layers)
    if size == 1e30:
        assert found.report.outputs["scores"] > 30


def test_sums_that_are_not_finite_are_refused():
    samples = [{"x": np.full((1, 4, 4, 4), 3e38)}]
    with pytest.raises(MicrotronError, match="numbers that are not finite, with samples that are"):
        microtron.quantize(changed("w", lambda w: 9 * np.abs(w)), samples, **QUICK)


def build(make):
    made = Builder("odd")
    return make(made, made.constant("w", np.eye(4, dtype=np.float32)))


def with_outputs_of_all_kinds(made, w):
    x = made.input("x", TensorType((2, 4), "float32"))
    made.add("unused", Binary(kind=BinaryKind.ADD, left=x, right=x))
    return made.graph((made.add("y", MatMul(left=x, right=w)), x, w))


def with_an_integer_input(made, w):
    i = made.input("i", TensorType((2, 4), "int32"))
    return made.graph((made.add("y", MatMul(left=made.add("f", Cast(x=i, dtype="float32")),
                                            right=w)),))


def with_its_own_square(made, w):
    x = made.input("x", TensorType((4, 4), "float32"))
    return made.graph((made.add("y", MatMul(left=x, right=x)), made.add("z", MatMul(left=x,
                                                                                    right=w))))


def with_a_response_normalization(made, w):
    """Its bias is 1, as a whole number: ONNX wants a real one."""
    x = made.input("x", TensorType((1, 4, 2, 2), "float32"))
    taps = made.constant("taps", np.ones((4, 4, 1, 1), np.float32))
    x = made.add("conv", Conv(x=x, weights=taps, channel_axis=1))
    x = made.add("norm", LocalResponseNorm(x=x, before=1, after=1, alpha=1, beta=1, bias=1,
                                      channel_axis=1))
    return made.graph((made.add("y", Conv(x=x, weights=taps, channel_axis=1)),))


@pytest.mark.parametrize("make", [with_outputs_of_all_kinds, with_an_integer_input,
                                  with_its_own_square, with_a_response_normalization])
def test_inputs_and_outputs_of_any_kind_are_those_of_onnxruntime(make):
    graph = build(make)
    rng = np.random.default_rng(0)
    samples = [{name: rng.integers(0, 9, type_.shape).astype(type_.dtype)
                for name, type_ in graph.inputs.items()} for _ in range(2)]
    found = microtron.quantize(graph, samples, **QUICK)
    model = onnx.load_from_string(found.to_onnx())
    right = onnxruntime.InferenceSession(model.SerializeToString()).run(
        list(graph.outputs), samples[0])
    ours = IntegerModel(found.graph).run(samples[0])
    for name, array in zip(graph.outputs, right, strict=True):
        np.testing.assert_allclose(ours[name], array, rtol=1e-5, atol=1e-5)
