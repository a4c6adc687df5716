"""Real TFLite models give, through the graph's meaning, what TFLite's reference kernels give."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.frontends.read import read_model
from microtron.compiler.graph.evaluate import evaluate

from ...models import golden_path, model_names, model_path, needs_models

QUANTIZED = ("ad01_int8.tflite", "kws_ref_model.tflite", "micro_speech_quantized.tflite",
             "mobilenet_v1_0.25_128_quant.tflite", "pretrainedResnet_quant.tflite",
             "vww_96_int8.tflite")


def samples(name):
    """Pairs of a graph's outputs and TFLite's, for all inputs there are."""
    graph, golden = read_model(model_path(name)), np.load(golden_path(name))
    number = sum(key.startswith("in0_s") for key in golden)
    assert number
    for sample in range(number):
        found = evaluate(graph, {tensor: golden[f"in{index}_s{sample}"]
                                 for index, tensor in enumerate(graph.inputs)})
        for index, tensor in enumerate(graph.outputs):
            yield found[tensor], golden[f"ref{index}_s{sample}"]


@needs_models
@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_models_equal_the_reference_kernels_bit_for_bit(name):
    for found, right in samples(name):
        np.testing.assert_array_equal(found, right)


@needs_models
def test_no_model_is_left_out():
    others = {"ad01_fp32.tflite", "kws_ref_model_float32.tflite", "pretrainedResnet.tflite",
              "vww_96_float.tflite"}
    assert set(model_names(".tflite")) == {*QUANTIZED, *others}
