"""The list of passes on real models: what they compute stays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from microtron.compiler.frontends.read import read_model
from microtron.compiler.graph.evaluate import evaluate
from microtron.compiler.passes.pipeline import optimized

from ...models import golden_path, model_path, needs_models

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
    before, after = evaluate(graph, given), evaluate(optimized(graph), given)
    for each in graph.outputs:
        np.testing.assert_array_equal(after[each], before[each])


@needs_models
def test_an_unsigned_model_is_signed_between_its_ends():
    graph = optimized(read_model(model_path("mobilenet_v1_0.25_128_quant.tflite")))
    types = Counter(node.type.dtype for node in graph.nodes.values())
    assert types["uint8"] == 1
    assert types["int8"] == len(graph.nodes) - 1
