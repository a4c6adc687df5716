"""The demo's network: what is in the repository is right, and so are the gradients behind it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "digits"
MOST_BYTES = 300_000
HELD_OUT = 360


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
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(onnx.load(FOLDER / "digits.onnx"), full_check=True)
    images, labels = digits
    session = runtime.InferenceSession(FOLDER / "digits.onnx", providers=["CPUExecutionProvider"])
    scores = [session.run(None, {"image": each[None, None].astype(np.float32)})[0][0]
              for each in images]
    assert (np.argmax(scores, axis=1) == labels).mean() >= 0.98


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
