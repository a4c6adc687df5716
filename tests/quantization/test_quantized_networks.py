"""Random float networks: the quantized file runs in ONNX Runtime, and every layer is within one
step of our integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Concat, Reshape, Transpose
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.vision.resize import Coordinates, Nearest, Resize
from microtron.compiler.graph.types import TensorType
from microtron.quantization.export.write_onnx import write_onnx
from microtron.quantization.layer_steps import layer_steps, stored_by_onnxruntime
from microtron.quantization.prepare import prepare
from microtron.quantization.report import IntegerModel

from .float_graphs import add_prelu, random_network, samples_for

SEEDS = (0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_layer_is_within_one_step_of_onnxruntime(seed):
    graph = random_network(seed)
    samples = samples_for(graph)
    found = microtron.quantize(graph, samples, techniques=() if seed % 2 else ("round", "correct"))
    known = stored_by_onnxruntime(found.to_onnx(), samples[0])
    steps = layer_steps(found.graph, known, samples[0])
    assert len(steps) == len(known) >= 5
    assert max(steps.values()) <= 1, steps
    wrong = {name: np.clip(array.astype(int) + 3, -128, 127).astype(np.int8)
             for name, array in known.items()}
    assert max(layer_steps(found.graph, wrong, samples[0]).values()) > 1


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_quantized_model_is_close_to_the_float_model(seed):
    graph = random_network(seed)
    samples = samples_for(graph)
    found = microtron.quantize(graph, samples, method="minmax", techniques=())
    integer = IntegerModel(found.graph)
    for sample in samples:
        right = evaluate(graph, sample)["scores"]
        assert np.abs(integer.run(sample)["scores"] - right).max() < 0.1 * np.abs(right).max()
    assert found.report.outputs["scores"] > 20
    assert set(found.graph.outputs) == set(graph.outputs)


@pytest.mark.parametrize("seed", range(8))
def test_a_float_graph_is_the_same_as_onnx(seed):
    graph = random_network(seed)
    sample = samples_for(graph, 1)[0]
    prepared = prepare(graph)
    right = evaluate(graph, sample)
    got = session(write_onnx(prepared, {})).run(list(graph.outputs), sample)
    for name, array in zip(graph.outputs, got, strict=True):
        np.testing.assert_allclose(evaluate(prepared, sample)[name], right[name], 1e-4, 1e-5)
        np.testing.assert_allclose(array, right[name], rtol=1e-4, atol=1e-5)


def test_dead_channels_unused_inputs_and_shared_weights_are_no_trouble():
    rng = np.random.default_rng(0)
    made = Builder("odd")
    x = made.input("x", TensorType((1, 4, 5, 5), "float32"))
    made.input("unused", TensorType((1, 2), "float32"))
    weights = rng.normal(0, 1, (4, 4, 1, 1)).astype(np.float32)
    weights[1] = 0
    weights[2] *= 1e-8
    names = made.constant("w", weights), made.constant("b", np.array([0, 5, -3, 1], np.float32))
    for number in range(2):
        x = made.add(f"y{number}", Conv(x=x, weights=names[0], bias=names[1], channel_axis=1))
    graph = made.graph((x, "y0"))
    samples = [{"x": rng.normal(0, 1, (1, 4, 5, 5)), "unused": np.zeros((1, 2))} for _ in range(3)]
    found = microtron.quantize(graph, samples)
    assert min(found.report.outputs.values()) > 30
    sample = {name: each.astype(np.float32) for name, each in samples[0].items()}
    theirs = session(onnx.load_from_string(found.to_onnx())).run(list(graph.outputs), sample)
    ours = IntegerModel(found.graph).run(sample)
    for name, array in zip(graph.outputs, theirs, strict=True):
        np.testing.assert_allclose(ours[name], array, atol=1e-4)


def test_layers_that_are_named_stay_float():
    graph = random_network(2)
    samples = samples_for(graph, 2)
    names = [name for name in graph.nodes if name.startswith("conv")]
    found = microtron.quantize(graph, samples, keep_float=names[:1], techniques=())
    everything = microtron.quantize(graph, samples, techniques=())
    assert len(found.report.layers) < len(everything.report.layers)
    assert found.report.to_dict()["kept_float"] == names[:1]
    with pytest.raises(MicrotronError, match="there is no layer conv99; layers are conv0"):
        microtron.quantize(graph, samples, keep_float=["conv99"])


def test_layers_stay_float_until_the_loss_is_small_enough():
    graph = replace(random_network(0), outputs=("scores",))
    samples = samples_for(graph, 4)
    plain = microtron.quantize(graph, samples, techniques=(), method="minmax")
    assert not plain.report.kept_float
    loss = 100 * 10 ** (-plain.report.outputs["scores"] / 20)
    found = microtron.quantize(graph, samples, techniques=(), method="minmax", max_loss=loss / 1.5)
    assert found.report.kept_float
    assert found.report.outputs["scores"] > plain.report.outputs["scores"]


def test_labels_give_the_accuracy_before_and_after():
    graph = replace(random_network(3), outputs=("scores",))
    samples = samples_for(graph, 4)
    labels = [int(evaluate(graph, sample)["scores"].argmax()) for sample in samples]
    found = microtron.quantize(graph, samples, labels=labels, techniques=())
    before, after = found.report.accuracy
    assert before == 100
    assert after >= 50
    with pytest.raises(MicrotronError, match="there are 9 labels, but 4 samples"):
        microtron.quantize(graph, samples, labels=[0] * 9, techniques=())


def test_a_quantized_model_is_refused():
    graph = random_network(1)
    found = microtron.quantize(graph, samples_for(graph, 1), techniques=(), method="minmax")
    with pytest.raises(MicrotronError, match=r"random_1 is quantized already, as .* with a scale"):
        microtron.quantize(found.graph, samples_for(graph, 1))


def test_random_data_marks_all_that_it_makes():
    graph = random_network(1)
    found = microtron.quantize(graph, random_data=True, techniques=(), method="minmax")
    assert "timing only" in found.report.to_dict()["warning"]
    model = onnx.load_from_string(found.to_onnx())
    assert any("timing only" in each.value for each in model.metadata_props)
    with pytest.raises(MicrotronError, match="needs samples of the model's inputs: --data"):
        microtron.quantize(graph)
    with pytest.raises(MicrotronError, match="random data takes the place of samples"):
        microtron.quantize(graph, samples_for(graph, 1), random_data=True)


@pytest.mark.parametrize("axis", [1, 3])
def test_a_slope_for_each_channel_hands_over_nothing(axis):
    rng = np.random.default_rng(0)
    made = Builder("prelu")
    x = made.input("x", TensorType((1, 6, 6, 6), "float32"))
    for number in range(3):
        weights = made.constant(f"w{number}", rng.normal(0, 0.4, (6, 6, 3, 3)).astype(np.float32))
        x = made.add(f"conv{number}", Conv(x=x, weights=weights, pad=(1, 1, 1, 1),
                                           channel_axis=axis))
        if number < 2:
            x = add_prelu(made, rng, x, axis, f"prelu{number}")
    check_one_program(made.graph((x,)))


def test_many_channels_with_repeated_pixels_hand_over_nothing():
    rng = np.random.default_rng(0)
    made = Builder("resize")
    x = made.input("x", TensorType((1, 8, 6, 6), "float32"))

    def conv(name, x, outputs, stride=1):
        weights = made.constant(f"{name}.weights", rng.normal(0, 0.2, (
            outputs, made.type_of(x).shape[1], 1, 1)).astype(np.float32))
        return made.add(name, Conv(x=x, weights=weights, stride=(stride, stride), channel_axis=1,
                                   low=0))

    first = conv("first", x, 16)
    small = conv("small", first, 96, 2)
    large = made.add("large", Resize(x=small, shape=(1, 96, 6, 6), nearest=Nearest.FLOOR,
                                     coordinates=Coordinates.ASYMMETRIC))
    both = made.add("both", Concat(parts=(large, first), axis=1))
    check_one_program(made.graph((conv("last", both, 5),)))


@pytest.mark.parametrize("last", [False, True])
def test_a_flattened_image_with_other_axes_hands_over_nothing(last):
    """Channels last, as Keras flattens them, also in a model that converters gave channels
    first."""
    rng = np.random.default_rng(0)
    made = Builder("flat")
    x = made.input("x", TensorType((1, 5, 4, 6) if last else (1, 6, 5, 4), "float32"))
    weights = made.constant("w", rng.normal(0, 0.2, (7, 6, 3, 3)).astype(np.float32))
    x = made.add("conv", Conv(x=x, weights=weights, channel_axis=3 if last else 1, low=0))
    if not last:
        x = made.add("moved", Transpose(x=x, order=(0, 2, 3, 1)))
    x = made.add("flat", Reshape(x=x, shape=(1, 42)))
    matrix = made.constant("m", rng.normal(0, 0.2, (42, 9)).astype(np.float32))
    x = add_prelu(made, rng, made.add("dense", MatMul(left=x, right=matrix)), 1, "prelu")
    matrix = made.constant("n", rng.normal(0, 0.2, (9, 5)).astype(np.float32))
    check_one_program(made.graph((made.add("scores", MatMul(left=x, right=matrix)),)))


def check_one_program(graph):
    """Quantized, a graph with one output is one program, and the accelerator's numbers are the
    CPU's."""
    samples = samples_for(graph)
    found = microtron.quantize(graph, samples, techniques=(), config="tiny")
    assert found.report.placement.programs == 1
    assert found.report.placement.handovers == 2
    steps = layer_steps(found.graph, stored_by_onnxruntime(found.to_onnx(), samples[0]), samples[0])
    assert max(steps.values()) <= 1, steps
    model = microtron.compile(found.graph, "tiny")
    [given] = model.run(samples[0], "functional").outputs.values()
    [name] = graph.outputs
    np.testing.assert_array_equal(given, IntegerModel(found.graph).run(samples[0])[name])
