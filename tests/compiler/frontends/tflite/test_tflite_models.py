"""Real TFLite models, and a suite of models of one operator each, give through the graph's meaning
what TFLite's reference kernels give."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import evaluate

from ....models import MODELS, golden_path, model_names, model_path, needs_models, suite

QUANTIZED = ("ad01_int8.tflite", "kws_ref_model.tflite", "micro_speech_quantized.tflite",
             "mobilenet_v1_0.25_128_quant.tflite", "pretrainedResnet_quant.tflite",
             "vww_96_int8.tflite")
# The weights of the second are integers; TFLite quantizes its activations anew in every run, which
# real numbers only approximate.
FLOAT = {"ad01_fp32.tflite": 1e-4, "kws_ref_model_float32.tflite": 5e-3,
         "pretrainedResnet.tflite": 1e-5, "vww_96_float.tflite": 1e-5}
SUITE = "glow_tflite"
EXCLUDED = tomllib.loads(
    (Path(__file__).parent / "exclusions.toml").read_text(encoding="utf-8"))[SUITE]


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
        np.testing.assert_array_equal(found, right, strict=True)


@needs_models
@pytest.mark.parametrize("name", FLOAT)
def test_models_of_real_numbers_are_near_the_reference_kernels(name):
    for found, right in samples(name):
        np.testing.assert_allclose(found, right, rtol=FLOAT[name], atol=FLOAT[name])


@needs_models
def test_no_model_is_left_out():
    assert set(model_names(".tflite")) == {*QUANTIZED, *FLOAT}


def cases():
    return sorted(path.stem for path in suite(SUITE).glob("*.tflite")) if MODELS else []


def store(name, number, type_):
    """An array of the suite: a byte, then its numbers."""
    data = (suite(SUITE) / f"{name}.{number}").read_bytes()[1:]
    return np.frombuffer(data, type_.dtype).reshape(type_.shape)


def compare(name):
    graph = read_model(suite(SUITE) / f"{name}.tflite")
    found = evaluate(graph, {tensor: store(name, f"inp{index}", type_)
                             for index, (tensor, type_) in enumerate(graph.inputs.items())})
    for index, tensor in enumerate(graph.outputs):
        right = store(name, f"out{index}", graph.type_of(tensor))
        np.testing.assert_allclose(found[tensor], right, rtol=1e-5, atol=1e-6)


@needs_models
@pytest.mark.parametrize("name", cases())
def test_every_operator_of_the_suite_gives_what_it_must(name):
    if name not in EXCLUDED:
        compare(name)
        return
    with pytest.raises((MicrotronError, AssertionError, OSError)):
        compare(name)


@needs_models
def test_every_exclusion_is_a_case_and_has_a_reason():
    assert set(EXCLUDED) <= set(cases())
    assert all(len(reason) > 10 for reason in EXCLUDED.values())
