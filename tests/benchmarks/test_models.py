"""Models for benchmarks: valid, the same every time, and of numbers that use their range."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = {"resnet18": {"size": 32}, "resnet50": {"size": 32}, "mobilenet_v2": {"size": 32},
         "mobilenet_v2_pair": {"size": 32},
         "vit_tiny": {"size": 32, "patch": 8, "width": 48, "depth": 2},
         "bert_block": {"tokens": 8, "width": 32, "heads": 4}}
OPERATORS = {"resnet18": ("Conv", 20), "resnet50": ("Conv", 53), "mobilenet_v2": ("Conv", 52),
             "mobilenet_v2_pair": ("Conv", 52),
             "vit_tiny": ("MatMul", 2 * 8), "bert_block": ("MatMul", 8)}


@pytest.fixture(scope="module")
def models():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from models.catalogue import MODELS
    finally:
        sys.path.remove(str(BENCHMARKS))
    return MODELS


def test_every_model_is_tested(models):
    assert set(SMALL) == set(models)


@pytest.mark.parametrize("name", SMALL)
def test_a_model_runs_and_its_numbers_use_their_range(models, name, tmp_path):
    path = tmp_path / "model.onnx"
    models[name](path, **SMALL[name])
    model = onnx.load(path)
    kind, times = OPERATORS[name]
    assert [node.op_type for node in model.graph.node].count(kind) == times
    values = stored_numbers(model)
    assert len(values) > 10
    for tensor, array in values.items():
        assert array.dtype == np.int8
        ends = np.isin(array, (-128, 127)).mean()
        assert len(np.unique(array)) > min(8, array.size // 2), f"{tensor} hardly varies"
        assert ends < 0.9, f"{tensor} is saturated in {ends:.0%} of its numbers"
    assert np.mean([(array == 127).mean() for array in values.values()]) < 0.02


def stored_numbers(model):
    """All quantized activations of a model for data that it was not calibrated on."""
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))
    session = runtime.InferenceSession(model.SerializeToString(),
                                       providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    image = np.random.default_rng(9).normal(0, 1, given.shape).astype(np.float32)
    names = [each.name for each in session.get_outputs()]
    values = dict(zip(names, session.run(names, {given.name: image}), strict=True))
    first, *_ = values.values()
    assert np.isfinite(first).all()
    return {name: each for name, each in values.items() if name.startswith("QuantizeLinear")}


def test_a_seed_gives_the_same_file_and_another_seed_another(models, tmp_path):
    files = []
    for number, seed in enumerate((1, 1, 2)):
        files.append(tmp_path / f"{number}.onnx")
        models["bert_block"](files[-1], seed=seed, **SMALL["bert_block"])
    first, again, other = (each.read_bytes() for each in files)
    assert first == again != other
