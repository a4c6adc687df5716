"""Real ONNX models, and a suite of models of few operators: equal to ONNX Runtime, layer by layer
and in what they are for."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.graph.evaluate_graph import compute_node, evaluate
from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.reduction import Reduce
from microtron.compiler.graph.operations.layers.window import Conv, Pool
from microtron.compiler.graph.operations.pointwise.binary import Binary
from microtron.compiler.graph.operations.pointwise.quantize import Lookup
from microtron.compiler.passes.fold_constants import fold_constants
from microtron.compiler.passes.integer_moves import integer_moves
from microtron.compiler.passes.integer_operators import integer_operators
from microtron.compiler.passes.remove_dead import remove_dead

from ....models import MODELS, golden_path, model_names, model_path, needs_models, suite
from .onnx_models import runtime, with_all_outputs, with_unsigned_weights

FLOAT = ("FastestDet.onnx", "minilm_l3_encoder_float.onnx", "mobilenet_v2_torchvision_float.onnx",
         "resnet20_cifar10_float.onnx")
# Quantized models, and how many of their layers compute with integers.
QUANTIZED = {"minilm_l3_encoder_qdq_s8s8.onnx": 27, "mobilenet_v2_torchvision_qdq_s8s8.onnx": 64,
             "resnet20_cifar10_qdq_s8s8_perchannel.onnx": 30,
             "resnet20_cifar10_qdq_s8s8_pertensor_sym.onnx": 30,
             "resnet20_cifar10_qlinear_u8s8.onnx": 30}
COMPUTES = (Binary, Conv, Lookup, MatMul, Pool, Reduce)
CIFAR = tuple(each for each in QUANTIZED if each.startswith("resnet20"))
POINTS = 0.005                  # by which the share of right answers may differ
FEW = 20                        # samples that take a second
IMAGENET = ("mobilenet_v2_torchvision_qdq_s8s8.onnx", "mobilenet_v2_torchvision_float.onnx")
MINILM = "minilm_l3_encoder_qdq_s8s8.onnx"
SUITE = "opencv_quant"
EXCLUDED = tomllib.loads(
    (Path(__file__).parent / "exclusions_onnx.toml").read_text(encoding="utf-8"))[SUITE]


@cache
def graph_of(name):
    """A model as its integer operators."""
    graph = read_model(model_path(name))
    return remove_dead(integer_operators(integer_moves(fold_constants(graph))))


@needs_models
def test_no_model_is_left_out():
    assert set(model_names(".onnx")) == {*FLOAT, *QUANTIZED}


@needs_models
@pytest.mark.parametrize("name", FLOAT)
def test_models_of_real_numbers_are_near_onnx_runtime(name):
    graph, golden = read_model(model_path(name)), np.load(golden_path(name))
    number = sum(key.startswith("in0_s") for key in golden)
    assert number
    for sample in range(number):
        found = evaluate(graph, {tensor: golden[f"in{index}_s{sample}"]
                                 for index, tensor in enumerate(graph.inputs)})
        for index, tensor in enumerate(graph.outputs):
            np.testing.assert_allclose(found[tensor], golden[f"ref{index}_s{sample}"],
                                       rtol=1e-4, atol=1e-4)


def layers(name, sample):
    """Each tensor that our graph and ONNX Runtime have in common, as both compute it from the same
    inputs of that layer."""
    graph, golden = graph_of(name), np.load(golden_path(name))
    values = {tensor: golden[f"in{index}_s{sample}"] for index, tensor in enumerate(graph.inputs)}
    model = with_all_outputs(with_unsigned_weights(onnx.load(model_path(name))))
    session = runtime(model.SerializeToString())
    right = dict(zip([each.name for each in session.get_outputs()], session.run(None, dict(values)),
                     strict=True))
    values |= {tensor: each.array for tensor, each in graph.constants.items()}
    for tensor, node in graph.nodes.items():
        values[tensor] = compute_node(node, [Value(graph.type_of(each), values[each])
                                             for each in node.operation.operands()])
        if tensor in right:
            yield tensor, values[tensor], right[tensor]
            values[tensor] = right[tensor]


@needs_models
@pytest.mark.parametrize("name", QUANTIZED)
def test_every_layer_is_within_a_step_of_onnx_runtime_on_the_same_inputs(name):
    graph, compared = graph_of(name), set()
    for tensor, found, right in layers(name, 0):
        compared.add(tensor)
        assert (found.shape, found.dtype) == (right.shape, right.dtype), tensor
        if graph.type_of(tensor).is_quantized:
            assert np.abs(found.astype(int) - right).max() <= 1, tensor
        else:
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4, err_msg=tensor)
    integers = [tensor for tensor, node in graph.nodes.items()
                if node.type.is_quantized and isinstance(node.operation, COMPUTES)]
    assert len(integers) == QUANTIZED[name]
    for tensor in integers:             # or what is only moved or clamped after it
        while tensor not in compared:
            (tensor,) = graph.readers[tensor]
            assert not isinstance(graph.nodes[tensor].operation, COMPUTES)


def manifest(name, words):
    """A number that the manifest says was measured for a model."""
    text = (MODELS / "MANIFEST.md").read_text(encoding="utf-8").partition(f"### {name}\n")[2]
    return int(re.search(rf'"{re.escape(words)}": \[?(\d+)', text)[1])


def small_images(number):
    """CIFAR-10, as the models want it."""
    data = np.load(MODELS / "data" / "cifar10_test_1000.npz")
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    images = (data["x"][:number].astype(np.float32) / 255 - mean) / deviation
    return images.transpose(0, 3, 1, 2)[:, None], data["y"][:number]


def classes(name, images):
    """The class that our graph gives each image."""
    graph = graph_of(name)
    (tensor,), (output,) = graph.inputs, graph.outputs
    return np.array([evaluate(graph, {tensor: each})[output].argmax() for each in images])


@needs_models
@pytest.mark.parametrize("name", CIFAR)
def test_a_few_small_images_are_told_as_onnx_runtime_tells_them(name):
    images, _ = small_images(FEW)
    session = runtime(model_path(name).read_bytes())
    right = [session.run(None, {session.get_inputs()[0].name: each})[0].argmax() for each in images]
    assert np.mean(classes(name, images) != right) <= POINTS


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("name", CIFAR)
def test_all_small_images_are_told_as_well_as_the_manifest_says(name):
    images, labels = small_images(1000)
    share = np.mean(classes(name, images) == labels)
    assert abs(share - manifest(name, "correct of 1000 (optimized kernels)") / 1000) <= POINTS


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("name", IMAGENET)
def test_all_large_images_are_told_as_well_as_the_manifest_says(name):
    image = pytest.importorskip("PIL.Image")
    graph = graph_of(name)
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    files = sorted((MODELS / "data" / "imagenet_100").glob("*.jpg"))
    right = 0
    for file in files:
        with image.open(file) as opened:
            pixels = np.asarray(opened.convert("RGB"), np.float32)[16:240, 16:240]
        x = ((pixels / 255 - mean) / deviation).transpose(2, 0, 1)[None]
        right += evaluate(graph, {"input": x})["logits"].argmax() == int(file.name[:4])
    measured = manifest(name, "top1/top5 of 100 (optimized kernels)")
    assert abs(right - measured) <= len(files) * POINTS


def sentence(number):
    """What a sentence is about: the mean of what its words become."""
    graph, data = graph_of(MINILM), np.load(MODELS / "data" / "minilm_l3_encoder_io.npz")
    mask = data["mask"][number]
    hidden = evaluate(graph, {"embeddings": data["emb"][number][None], "mask": mask[None]})
    vector = hidden["last_hidden_state"][0][mask.ravel() > -1].mean(0)
    return vector / np.linalg.norm(vector)


def nearest(numbers):
    """For each of some sentences, the one that is most like it."""
    vectors = np.array([sentence(each) for each in numbers])
    alike = vectors @ vectors.T - 2 * np.eye(len(vectors))
    return {number: numbers[found] for number, found in zip(numbers, alike.argmax(1), strict=True)}


@needs_models
def test_a_few_sentences_are_nearest_to_their_paraphrases():
    assert nearest([0, 1, 2, 3]) == {0: 1, 1: 0, 2: 3, 3: 2}


@needs_models
@pytest.mark.soak
def test_sentences_are_nearest_to_their_paraphrases():
    starts = (0, 2, 4, 6, 9, 11, 13, 16, 18, 20, 22)        # of pairs; the other two are alone
    found = nearest(list(range(24)))
    assert all((found[each], found[each + 1]) == (each + 1, each) for each in starts)


@needs_models
@pytest.mark.parametrize("name", sorted(path.stem for path in suite(SUITE).glob("*.onnx"))
                         if MODELS else [])
def test_models_of_the_suite_equal_their_stored_output_within_a_step(name):
    folder = suite(SUITE)
    graph = read_model(folder / f"{name}.onnx")
    (tensor,), (output,) = graph.inputs, graph.outputs
    x, right = (np.load(folder / f"{each}_{name}.npy") for each in ("input", "output"))
    found = evaluate(graph, {tensor: x.astype(np.float32)})[output]
    steps = [each.quantization.scale for each in graph.types.values()
             if each.is_quantized and len(each.quantization.scales) == 1]
    passes = found.shape == right.shape and np.abs(found - right).max() <= 1.01 * steps[-1]
    assert passes != (name in EXCLUDED), EXCLUDED.get(name, "not excluded")


@needs_models
def test_every_exclusion_names_a_model():
    assert set(EXCLUDED) <= {path.stem for path in suite(SUITE).glob("*.onnx")}
