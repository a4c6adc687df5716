"""Networks for one image that take several: each result is that of the image alone, or the network
is refused."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.indexing import Tile
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import LayerNorm, Softmax
from microtron.compiler.graph.operations.layers.reduction import Reduce, ReduceKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.vision.resize import Resize
from microtron.compiler.graph.set_batch import set_batch
from microtron.compiler.graph.types import GraphError, TensorType
from microtron.isa.config import tiny
from tests.command import bad, good
from tests.compiler.network.networks import classifier
from tests.models import golden_path, model_path, needs_models

IMAGES = 3


def samples(graph, seed=0):
    rng = np.random.default_rng(seed)
    return [{name: rng.integers(-128, 128, type_.shape).astype(type_.dtype)
             for name, type_ in graph.inputs.items()} for _ in range(IMAGES)]


def check(graph):
    """Several images at once give what each gives alone."""
    given = samples(graph)
    at_once = set_batch(graph, IMAGES)
    found = evaluate(at_once, {name: np.concatenate([each[name] for each in given])
                               for name in graph.inputs})
    for name in graph.outputs:
        right = np.concatenate([evaluate(graph, each)[name] for each in given])
        np.testing.assert_array_equal(found[name], right, name)


def real_graph(*operations, shape=(1, 4, 6), **constants):
    """Operations one after the other; each reads x, the one before it, and constants."""
    builder = Builder()
    builder.input("x", TensorType(shape, "float32"))
    for name, array in constants.items():
        builder.constant(name, np.asarray(array, np.float32))
    last = "x"
    for number, make in enumerate(operations):
        last = builder.add(f"n{number}", make(last))
    return builder.graph((last,))


def numbers(*shape):
    return np.random.default_rng(7).normal(size=shape)


def add(other):
    return lambda x: Binary(kind=BinaryKind.ADD, left=x, right=other)


@pytest.mark.parametrize("axis", [1, 3])
def test_a_classifier_takes_several_images(axis):
    check(classifier(axis))


@pytest.mark.parametrize("operations", [
    [lambda x: Reshape(x=x, shape=(4, 6)), lambda x: MatMul(left=x, right="m"),
     lambda x: Reshape(x=x, shape=(1, 4, 5))],
    [lambda x: Transpose(x=x, order=(0, 2, 1)), lambda x: MatMul(left="x", right=x)],
    [add("row"), lambda x: Softmax(x=x, axis=-1), lambda x: LayerNorm(
        x=x, scale="row", bias="row", axis=2)],
    [lambda x: Slice(x=x, starts=(0, 1, 0), stops=(1, 4, 6), steps=(1, 1, 2)),
     lambda x: Pad(x=x, before=(0, 1, 0), after=(0, 0, 2))],
    [lambda x: Concat(parts=(x, "x"), axis=1), lambda x: Reduce(
        x=x, kind=ReduceKind.MAX, axes=(1,), keep=True)],
    [lambda x: Resize(x=x, shape=(1, 8, 6))],
], ids=("rows", "products", "normalized", "cut", "joined", "resized"))
def test_operations_that_keep_images_apart(operations):
    check(real_graph(*operations, m=numbers(6, 5), row=numbers(6)))


@pytest.mark.parametrize(("operations", "reason"), [
    ([lambda x: Transpose(x=x, order=(1, 0, 2)), lambda x: Transpose(x=x, order=(1, 0, 2))],
     "n0 \\(transpose\\) does not take a batch: it moves the first axis"),
    ([lambda x: Reduce(x=x, kind=ReduceKind.MAX, axes=(0, 1, 2), keep=True)],
     "takes numbers along"),
    ([lambda x: Reshape(x=x, shape=(4, 6)), add("square"), lambda x: Reshape(
        x=x, shape=(1, 4, 6))], "square has numbers of its own along the first axis"),
    ([lambda x: Reshape(x=x, shape=(4, 6))], r"the output n0 has the shape \(4, 6\)"),
    ([lambda x: Reshape(x=x, shape=(24,)), lambda x: Softmax(x=x), lambda x: Reshape(
        x=x, shape=(1, 24))], "along the first axis together"),
    ([lambda x: Concat(parts=(x, x), axis=0)], "it joins tensors along the first axis"),
    ([lambda x: Slice(x=x, starts=(0, 0, 0), stops=(0, 4, 6), steps=(1, 1, 1))], "cuts the first"),
    ([lambda x: Tile(x=x, repeats=(1, 2, 1))], "nothing is known"),
    ([lambda x: Reshape(x=x, shape=(4, 6)), lambda x: MatMul(left="other", right=x),
      lambda x: Reshape(x=x, shape=(1, 2, 6))], "both sides must have images"),
    ([lambda x: Reshape(x=x, shape=(4, 6)), add("x")], "n0 is repeated along the first axis"),
    ([lambda x: Reshape(x=x, shape=(4, 1, 6)), lambda x: MatMul(left=x, right="several"),
      lambda x: Reshape(x=x, shape=(1, 4, 5))], "its matrices differ along the first axis"),
    ([lambda x: Pad(x=x, before=(1, 0, 0), after=(0, 0, 0))], "it adds to the first axis"),
    ([lambda x: Resize(x=x, shape=(2, 4, 6))], "it resizes the first axis"),
], ids=("moved", "sum", "constant", "output", "softmax", "joined", "cut", "unknown", "weights",
        "repeated", "matrices", "border", "resized"))
def test_operations_that_mix_images_are_refused(operations, reason):
    graph = real_graph(*operations, square=numbers(4, 6), other=numbers(2, 4),
                       several=numbers(4, 6, 5))
    with pytest.raises(GraphError, match=reason):
        set_batch(graph, 2)


def test_inputs_without_an_axis_of_one_are_refused():
    with pytest.raises(GraphError, match=r"the input x has the shape \(2, 3\), but a batch takes"):
        set_batch(real_graph(add("row"), shape=(2, 3), row=numbers(3)), 2)


@pytest.mark.parametrize("batch", [0, -1, 1.5, "two", 1 << 13, None])
def test_a_batch_is_a_small_number(batch):
    with pytest.raises(GraphError, match="must be from 1 to 4096"):
        set_batch(real_graph(add("row"), row=numbers(6)), batch)


def test_several_images_on_several_rows_of_the_array():
    graph = classifier(1)
    model = microtron.compile(graph, "tiny", batch=2)
    given = samples(graph)[:2]
    found = model.run({"x": np.concatenate([each["x"] for each in given])}, device="functional")
    for name in graph.outputs:
        right = np.concatenate([evaluate(graph, each)[name] for each in given])
        np.testing.assert_allclose(found.outputs[name], right, rtol=1e-6, err_msg=name)
    assert tiny.batch == 1


@needs_models
def test_a_network_of_a_file_that_fixes_one_image(tmp_path):
    name = "kws_ref_model.tflite"
    image = tmp_path / "two.mt"
    good("compile", model_path(name), "--batch", "2", "--config", "small", "-o", image)
    model, golden = microtron.load(image), np.load(golden_path(name))
    entry, = model.inputs
    one = golden["in0_s0"]
    assert model.inputs[entry].shape == (2, *one.shape[1:])
    found, = model.run({entry: np.concatenate([one, one])}, device="functional").outputs.values()
    np.testing.assert_array_equal(found, np.concatenate([golden["ref0_s0"]] * 2))


def test_an_image_has_its_batch_already(tmp_path):
    image = tmp_path / "model.mt"
    microtron.compile(classifier(1), "tiny").save(image)
    assert "--batch is for .tflite and .onnx files" in bad("inspect", image, "--batch", "2")
