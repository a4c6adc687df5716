"""The list of passes on real models: what they compute stays."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.saved import load_graph, save_graph
from microtron.compiler.passes.pipeline import run_passes

from ...models import golden_path, model_path, needs_models, suite
from ..graph.random_graphs import random_inputs

TO_THE_BIT = ("ad01_int8.tflite", "kws_ref_model.tflite", "micro_speech_quantized.tflite",
              "mobilenet_v1_0.25_128_quant.tflite", "pretrainedResnet_quant.tflite",
              "resnet20_cifar10_qlinear_u8s8.onnx", "vww_96_int8.tflite")


def sample(graph, name):
    """Inputs of a model, from its goldens."""
    golden = np.load(golden_path(name))
    return {each: golden[f"in{number}_s0"].astype(type_.dtype).reshape(type_.shape)
            for number, (each, type_) in enumerate(graph.inputs.items())}


@needs_models
@pytest.mark.parametrize("name", TO_THE_BIT)
def test_an_integer_model_computes_the_same_to_the_bit(name):
    graph = read_model(model_path(name))
    given = sample(graph, name)
    before, after = evaluate(graph, given), evaluate(run_passes(graph), given)
    for each in graph.outputs:
        np.testing.assert_array_equal(after[each], before[each])


@needs_models
@pytest.mark.parametrize("folder", ["glow_tflite", "opencv_quant"])
def test_single_operators_compute_the_same_and_can_be_saved(folder):
    """To the bit, also ONNX's quantized ones: alone, none of these rounds near a half."""
    compared = 0
    for path in sorted(suite(folder).rglob("*.[to][fn]*")):
        if path.suffix not in (".tflite", ".onnx") or "detection_post_processing" in path.name:
            continue
        graph = read_model(path)
        data, arrays = save_graph(run_passes(graph))
        found = load_graph(json.loads(json.dumps(data)), [each.tobytes() for each in arrays])
        given = random_inputs(graph, 0)
        for name, type_ in graph.inputs.items():
            if type_.is_integer and not type_.is_quantized:
                given[name] = np.zeros_like(given[name])        # perhaps an index
        before, after = evaluate(graph, given), evaluate(found, given)
        for each in graph.outputs:
            np.testing.assert_array_equal(after[each], before[each], f"{path.name}: {each}")
        compared += 1
    assert compared > 30


@needs_models
def test_an_unsigned_model_is_signed_between_its_ends():
    graph = run_passes(read_model(model_path("mobilenet_v1_0.25_128_quant.tflite")))
    types = Counter(node.type.dtype for node in graph.nodes.values())
    assert types["uint8"] == 1
    assert types["int8"] == len(graph.nodes) - 1
