"""Every quantized model there is, compiled as users compile it, on all samples and devices."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import run_passes

from ..compiler.frontends.onnx.test_onnx_models import QUANTIZED as ONNX
from ..compiler.frontends.tflite.test_tflite_models import QUANTIZED as TFLITE
from ..models import golden_path, model_path, needs_models

SMALLEST = ("micro_speech_quantized.tflite", "kws_ref_model.tflite")
DEVICES = ("functional", "cycle")
FEW = 2             # samples of a model that is compared with its graph


def samples(model, golden):
    """Inputs and right outputs of each sample."""
    count = sum(key.startswith("in0_s") for key in golden)
    assert count
    for sample in range(count):
        yield ({name: golden[f"in{place}_s{sample}"] for place, name in enumerate(model.inputs)},
               {name: golden[f"ref{place}_s{sample}"] for place, name in enumerate(model.outputs)})


def check(model, device, pairs):
    with model.session(device) as session:
        for given, right in pairs:
            result = session.run(given)
            for name, values in right.items():
                np.testing.assert_array_equal(result[name], values, f"{name} on {device}")


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("config", ["base", "small"])
@pytest.mark.parametrize("name", TFLITE)
def test_tflite_models_equal_the_reference_kernels_bit_for_bit(name, config):
    model, golden = microtron.compile(model_path(name), config), np.load(golden_path(name))
    for device in DEVICES:
        check(model, device, samples(model, golden))


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_equal_them_on_the_hardware_too(name):
    model, golden = microtron.compile(model_path(name), "tiny"), np.load(golden_path(name))
    check(model, "rtl", samples(model, golden))


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("name", ONNX)
def test_onnx_models_give_what_their_graphs_mean(name):
    """After all passes, of which layers are compared with ONNX Runtime elsewhere. Real numbers of
    the CPU's nodes may differ in their last bits."""
    model, golden = microtron.compile(model_path(name), "base"), np.load(golden_path(name))
    graph = run_passes(read_model(model_path(name)))
    for given, _ in list(samples(model, golden))[:FEW]:
        right = evaluate(graph, given)
        for device in DEVICES:
            result = model.run(given, device=device)
            for output in model.outputs:
                found, wanted = (np.asarray(each, np.float64)
                                 for each in (result[output], right[output]))
                np.testing.assert_allclose(found, wanted, rtol=1e-4,
                                           atol=1e-5 * np.abs(wanted).max(), err_msg=device)
