"""The demo's network: what is in the repository is right, and so are the gradients behind it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize
from microtron.compiler.passes.pipeline import run_passes

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "digits"
MOST_BYTES = 300_000
HELD_OUT = 360
EVALUATED = 120                 # of them, by the graph too, which is slower


@pytest.fixture(scope="module")
def digits():
    with np.load(FOLDER / "digits_test.npz") as data:
        return data["images"], data["labels"]


def test_the_files_are_small_and_whole(digits):
    images, labels = digits
    assert (FOLDER / "digits.onnx").stat().st_size <= MOST_BYTES
    assert (images.shape, images.dtype, labels.shape) == ((HELD_OUT, 8, 8), np.uint8, (HELD_OUT,))
    assert images.max() == 16
    assert set(labels) == set(range(10))


def test_the_model_is_valid_and_knows_digits_that_it_has_not_seen(digits):
    """As ONNX Runtime computes it, and as the graph does, before passes and after."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    path = FOLDER / "digits.onnx"
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = runtime.SessionOptions()          # kernels for bytes saturate on some processors
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    graph = read_model(path)
    [last] = [node for node in graph.nodes.values() if isinstance(node.operation, Dequantize)
              and node.type.shape == (1, 10)]
    step = graph.type_of(last.operation.x).require_quantization().scale
    integers = run_passes(graph)
    images, labels = digits
    right = []
    for number, image in enumerate(images):
        given = {"image": image[None, None].astype(np.float32)}
        [expected] = session.run(None, given)
        right.append(expected.argmax() == labels[number])
        if number < EVALUATED:
            for each in (graph, integers)[number % 3 > 0:]:
                found = evaluate(each, given)["scores"]
                assert np.abs(found - expected).max() <= 1.01 * step
            right[-1] = found.argmax() == labels[number]
    assert np.mean(right) >= 0.98
    assert np.mean(right[:EVALUATED]) >= 0.96


def test_everything_between_the_first_and_the_last_node_is_of_8_bits():
    pytest.importorskip("onnx")
    graph = run_passes(read_model(FOLDER / "digits.onnx"))
    kinds = [type(node.operation).__name__ for node in graph.nodes.values()]
    assert kinds == ["Quantize", "Conv", "Conv", "Conv", "Conv", "Binary", "Pool", "Reshape",
                     "MatMul", "Dequantize"]


def test_gradients_are_those_of_the_loss():
    """Each against the slope of the loss along it, in one direction at a time."""
    spec = importlib.util.spec_from_file_location("network", FOLDER / "network.py")
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    rng = np.random.default_rng(0)
    parameters = {name: each.astype(np.float64) for name, each in network.initial(rng).items()}
    for name, each in parameters.items():
        parameters[name] = each + rng.normal(0, 0.01, each.shape)
    images, labels = rng.random((3, 8, 8, 1)), np.array([1, 7, 3])
    _, found = network.gradients(parameters, images, labels)
    assert set(found) == set(parameters)
    for name, gradient in found.items():
        assert gradient.shape == parameters[name].shape
        direction = rng.normal(0, 1, gradient.shape)
        losses = [network.gradients({**parameters, name: parameters[name] + step * direction},
                                    images, labels)[0] for step in (1e-5, -1e-5)]
        slope = (losses[0] - losses[1]) / 2e-5
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=2e-2, abs=1e-5)
