"""The demo's network with weights of 4 bits, and for two images, on accelerators for each."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import microtron
from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.network.network import Where
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import tiny
from microtron.testing.campaign import SMALL

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "digits"
REAL = ["Quantize", "Dequantize"]           # at the edges
FOUR_BITS = {"tiny": replace(tiny, wgt_bits=4), "rectangular": SMALL["int4"]}
TWO_IMAGES = {"tiny": replace(tiny, batch=2), "rectangular": SMALL["batch"]}


@pytest.fixture(scope="module")
def variants():
    spec = importlib.util.spec_from_file_location("variants", FOLDER / "variants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    with np.load(FOLDER / "digits_test.npz") as data:
        return data["images"].astype(np.float32)[:, None], data["labels"]


def check(name, config, images):
    """All between the edges is the accelerator's, and gives what the graph means."""
    graph = run_passes(read_model(FOLDER / name))
    right = evaluate(graph, {"image": images})["scores"]
    model = microtron.compile(graph, config, optimize=False, cost=lambda program: 1)
    hosted = [type(graph.nodes[each.name].operation).__name__ for each in model.nodes
              if each.where == Where.CPU]
    assert hosted == REAL
    for device in ("functional", "cycle"):
        np.testing.assert_array_equal(model.run(images, device)["scores"], right, device)


def test_the_files_are_what_the_script_makes(variants):
    model = onnx.load(FOLDER / "digits.onnx")
    assert onnx.load(FOLDER / "digits_int4.onnx") == variants.in_four_bits(model)
    assert onnx.load(FOLDER / "digits_batch2.onnx") == variants.for_images(model, 2)


@pytest.mark.parametrize("config", FOUR_BITS)
def test_weights_of_4_bits_are_multiplied_by_the_accelerator(config, digits):
    check("digits_int4.onnx", FOUR_BITS[config], digits[0][:1])


def test_weights_of_4_bits_are_weights_of_8_bits_too(digits):
    check("digits_int4.onnx", tiny, digits[0][:1])


@pytest.mark.parametrize("config", TWO_IMAGES)
@pytest.mark.parametrize("count", [1, 2])
def test_one_image_or_two_are_computed_where_a_tile_has_two(count, config, digits):
    name = {1: "digits.onnx", 2: "digits_batch2.onnx"}[count]
    check(name, TWO_IMAGES[config], digits[0][:count])


def test_few_more_digits_are_mistaken_with_weights_of_4_bits(digits):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(FOLDER / "digits_int4.onnx",
                                       providers=["CPUExecutionProvider"])
    images, labels = digits
    right = [session.run(None, {"image": image[None]})[0].argmax() == label
             for image, label in zip(images, labels, strict=True)]
    assert np.mean(right) >= 0.965


def test_weights_of_8_bits_are_refused_in_words_where_there_are_4():
    model = microtron.compile(FOLDER / "digits.onnx", FOUR_BITS["tiny"], cost=lambda program: 1)
    reasons = {each.reason for each in model.host_nodes if each.macs}
    assert reasons == {"weights from -127 to 127 without their zero point, but weights of this "
                       "configuration have 4 bits; quantize them to 4 bits, or take wgt_bits = 8"}
