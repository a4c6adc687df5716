"""Transformers as a whole: as near to ONNX Runtime without optimizations as the page on arithmetic
promises. Differences of single steps add up here, so the measure is the cosine."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.compose
import pytest

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import base
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.runtime.models.model import Model

from ..compiler.frontends.onnx.onnx_models import runtime
from ..models import golden_path, model_path, needs_models

QUANTIZED = "minilm_l3_encoder_qdq_s8s8.onnx"
LEAST = 0.995


def cosine(left, right):
    left, right = (each.reshape(-1).astype(np.float64) for each in (left, right))
    return left @ right / np.sqrt((left @ left) * (right @ right))


def sample():
    golden = np.load(golden_path(QUANTIZED))
    return golden["in0_s0"], golden["in1_s0"]


@needs_models
@pytest.mark.parametrize("name", ["minilm_l3_encoder_float.onnx", QUANTIZED])
def test_passes_keep_what_three_layers_compute(name):
    data = model_path(name).read_bytes()
    inputs = dict(zip(("embeddings", "mask"), sample(), strict=True))
    right, = runtime(data).run(None, inputs)
    graph = read_onnx(data)
    found = evaluate(run_passes(graph), inputs)[graph.outputs[0]]
    assert cosine(found, right) > 0.9999


@needs_models
def test_six_layers_on_the_accelerator_are_near_the_reference():
    """The encoder of three layers twice, one after the other."""
    encoder = onnx.load(model_path(QUANTIZED))
    twice = onnx.compose.merge_models(
        *(onnx.compose.add_prefix(encoder, prefix) for prefix in ("first/", "second/")),
        io_map=[("first/last_hidden_state", "second/embeddings")])
    data = twice.SerializeToString()
    embeddings, mask = sample()
    inputs = {"first/embeddings": embeddings, "first/mask": mask, "second/mask": mask}
    right, = runtime(data).run(None, inputs)
    graph = read_onnx(data)
    model = Model(**vars(compile_model(graph, base, ModelOptions(), version="")))
    assert model.programs
    found = model.run(inputs, device="functional").outputs[graph.outputs[0]]
    assert cosine(np.asarray(found), right) >= LEAST
