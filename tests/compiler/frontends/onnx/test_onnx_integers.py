"""Products of integers are exact, wherever their zero points come from."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import helper

from microtron.compiler.frontends.onnx.read_onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError
from microtron.compiler.passes.pipeline import run_passes

from .onnx_models import Known, graph_model, known, node_model, runtime

SHAPES = {
    "matrix": ((5, 9), (9, 6)), "batch": ((2, 3, 4, 9), (9, 6)), "row": ((9,), (9, 6)),
    "column": ((5, 9), (9,)), "both": ((9,), (9,)), "batches": ((2, 5, 9), (2, 9, 6)),
    "row and batches": ((9,), (2, 9, 6)),
}
ZEROS = ("none", "constant", "late", "by column", "late by column")


def values(rng, shape, dtype):
    return rng.integers(*(-128, 128) if dtype == "int8" else (0, 256), shape).astype(dtype)


def zero_point(rng, which, dtype, columns):
    """The operand of a node, and its number or numbers."""
    if which == "none":
        return None, np.zeros((), dtype)
    zero = values(rng, (columns,) if "column" in which else (), dtype)
    return known(zero, dtype) if "late" not in which else zero, zero


def results(model, operands):
    """What the graph means as it is read, and after its passes."""
    graph = read_onnx(model.SerializeToString())
    given = {name: operands[int(name[1:])] for name in graph.inputs}
    return [evaluate(each, given)["y0"] for each in (graph, run_passes(graph))]


@pytest.mark.parametrize("constant", [True, False], ids=["weights", "two activations"])
@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_is_that_of_numbers_less_their_zero_points(shape, zero, constant):
    rng = np.random.default_rng(len(shape) + 7 * len(zero))
    for one, other in (("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"), ("int8", "int8")):
        left, right = (values(rng, each, dtype)
                       for each, dtype in zip(SHAPES[shape], (one, other), strict=True))
        columns = right.shape[-1] if right.ndim > 1 else 1
        left_zero, z1 = zero_point(rng, zero.removesuffix(" by column").replace(
            "by column", "late"), one, 1)
        right_zero, z2 = zero_point(rng, zero, other, columns)
        operands = [left, Known(right) if constant else right, left_zero, right_zero]
        expected = (left.astype(np.int64) - z1) @ (right.astype(np.int64) - (
            z2 if right.ndim > 1 else z2.reshape(-1)[0]))
        for found in results(node_model("MatMulInteger", operands), operands):
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected)


CONVOLUTIONS = {
    "plain": ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    "in a border": ((1, 3, 6, 5), (4, 3, 3, 3), {"pads": [2, 1, 0, 3], "strides": [2, 1]}),
    "the same size": ((1, 3, 7, 5), (4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "by channel": ((1, 4, 6, 5), (8, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "in groups": ((1, 4, 6, 5), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
    "of one dimension": ((2, 3, 9), (4, 3, 3), {"pads": [1, 2]}),
}


@pytest.mark.parametrize("zero", ["none", "constant", "late", "by channel"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_is_that_of_numbers_less_their_zero_points(case, zero):
    """ONNX Runtime's convolution of real numbers is exact here: all sums are below 2²⁴. Its kernels
    for bytes saturate on some processors."""
    shape, kernel, attributes = CONVOLUTIONS[case]
    rng = np.random.default_rng(len(case) + 5 * len(zero))
    for one, other in (("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"), ("int8", "int8")):
        x, weights = values(rng, shape, one), values(rng, kernel, other)
        x_zero, z1 = zero_point(rng, "late" if zero == "by channel" else zero, one, 1)
        w_zero, z2 = zero_point(rng, zero.replace("late", "constant").replace(
            "by channel", "by column"), other, len(weights))
        operands = [x, Known(weights), x_zero, w_zero]
        kernels = weights - z2.reshape(-1, *(1,) * (weights.ndim - 1)).astype(np.float32)
        real = node_model("Conv", [x - np.float32(z1), Known(kernels)], attributes)
        expected, = runtime(real.SerializeToString()).run(None, {"x0": x - np.float32(z1)})
        for found in results(node_model("ConvInteger", operands, attributes), operands):
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected)


def test_constant_weights_less_their_zero_points_are_stored_as_such_where_they_fit():
    """Then there is nothing to take off the sums, and the accelerator adds nothing up twice."""
    operands = [values(np.random.default_rng(0), (3, 8), "uint8"),
                known(np.arange(64, 192).reshape(8, 16), "uint8"), None, known(128, "uint8")]
    graph = read_onnx(node_model("MatMulInteger", operands).SerializeToString())
    assert [type(each.operation).__name__ for each in graph.nodes.values()] == ["MatMul"]


FOUR = {"signed": (onnx.TensorProto.INT4, "int8", -8), "unsigned": (onnx.TensorProto.UINT4, "uint8",
                                                                   0)}


def four_bits(kind, shape, *, raw=True, missing=0, reader="DequantizeLinear"):
    """A model that reads a constant of 4 bits, and its numbers."""
    number, dtype, low = FOUR[kind]
    stored = np.random.default_rng(4).integers(low, low + 16, shape).astype(dtype)
    nibbles = np.pad(stored.ravel().astype(np.uint8) & 15, (0, stored.size % 2)).reshape(-1, 2)
    pairs = (nibbles[:, 0] | nibbles[:, 1] << 4).astype(np.uint8)[:len(nibbles) - missing]
    weights = onnx.TensorProto(name="w", data_type=number, dims=shape)
    if raw:
        weights.raw_data = pairs.tobytes()
    else:
        weights.int32_data.extend(pairs.tolist())
    zero = helper.make_tensor("z", number, [], [3])
    names = {"DequantizeLinear": ["w", "s", "z"], "Neg": ["w"], "QuantizeLinear": ["x", "s", "z"]}
    model = graph_model(
        [helper.make_node("Identity", ["x"], ["y0"]), helper.make_node(
            reader, names[reader], ["y1"], "node")],
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2,))], ["y0", "y1"],
        [weights, helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [0.5]), zero], opset=21)
    model.ir_version = 10
    return model.SerializeToString(), stored


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("shape", [(3, 5), (2, 2), (1,), ()], ids=str)
@pytest.mark.parametrize("kind", FOUR)
def test_constants_of_4_bits_are_what_they_stand_for(kind, shape, raw):
    model, stored = four_bits(kind, shape, raw=raw)
    x = np.ones(2, np.float32)
    found = evaluate(run_passes(read_onnx(model)), {"x": x})["y1"]
    np.testing.assert_array_equal(found, (stored.astype(np.float32) - 3) / 2)
    np.testing.assert_array_equal(found, runtime(model).run(["y1"], {"x": x})[0])


@pytest.mark.parametrize(("options", "message"), [
    ({"missing": 1}, "the tensor 'w' of shape .3, 5. has 7 bytes, but must have 8"),
    ({"missing": 1, "raw": False}, "has 7 pairs of numbers, but must have 8"),
    ({"reader": "Neg"}, "'w' has 4 bits, but only DequantizeLinear reads such constants"),
    ({"reader": "QuantizeLinear"}, "'z' has 4 bits, but only DequantizeLinear"),
], ids=str)
def test_constants_of_4_bits_that_make_no_sense_are_refused(options, message):
    with pytest.raises(GraphError, match=message):
        read_onnx(four_bits("signed", (3, 5), **options)[0])


def test_numbers_that_are_all_nothing_have_a_scale_of_one():
    x = np.zeros((2, 3), np.float32)
    model = node_model("DynamicQuantizeLinear", [x], outputs=3)
    found = evaluate(read_onnx(model.SerializeToString()), {"x0": x})
    assert not found["y0"].any()
    assert (found["y1"], found["y2"]) == (1, 0)
