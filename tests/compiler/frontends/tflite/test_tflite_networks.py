"""TFLite networks of a few operators: shapes that operators compute, weights in unusual types, and
what the graph looks like."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Concat, Reshape, Slice
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.pointwise.quantize import Clamp, Lookup, Rescale
from microtron.compiler.graph.operations.pointwise.unary import Unary
from microtron.compiler.graph.types import Quantization
from microtron.isa.instructions import Rounding

from .tflite_files import Operator, Tensor, file_of, reference, single


def operations(graph):
    return [type(node.operation) for node in graph.nodes.values()]


def run(data, *arrays):
    graph = read_tflite(data, "network.tflite")
    found = evaluate(graph, dict(zip(graph.inputs, arrays, strict=True)))
    return [found[name] for name in graph.outputs]


def test_a_shape_that_operators_compute_is_known_when_it_is_read():
    """As converters write Flatten for any number of images."""
    tensors = [Tensor((2, 3, 4), name="x"), Tensor((3,), "int32"),
               *(Tensor.constant([number]) for number in (0, 1, 1)), Tensor((), "int32"),
               Tensor.constant(-1), Tensor((2,), "int32"), Tensor((2, 12), name="y")]
    data = file_of(tensors, [
        Operator("SHAPE", [0], [1], "ShapeOptions", {"OutType": 2}),
        Operator("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"ShrinkAxisMask": 1}),
        Operator("PACK", [5, 6], [7], "PackOptions", {"ValuesCount": 2}),
        Operator("RESHAPE", [0, 7], [8], "ReshapeOptions")], [0], [8])
    graph = read_tflite(data, "flatten.tflite")
    assert operations(graph) == [Reshape]
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(data, array)[0], reference(data, [array])[0], strict=True)


def test_a_fused_relu_becomes_bounds_and_multipliers_are_as_the_kernels_compute_them():
    x = Tensor((1, 4, 4, 2), "int8", 0.1, 3, name="x")
    w = Tensor.constant(np.ones((3, 1, 1, 2)), "int8", scale=[0.2, 0.3, 0.4])
    b = Tensor.constant([1, 2, 3], "int32")
    y = Tensor((1, 4, 4, 3), "int8", 0.05, -100, name="y")
    graph = read_tflite(single("CONV_2D", [x, w, b], y, "Conv2DOptions", StrideH=1, StrideW=1,
                               FusedActivationFunction=3), "conv.tflite")
    (node,) = graph.nodes.values()
    assert isinstance(node.operation, Conv)
    assert (node.operation.low, node.operation.high) == (-100, 20)
    assert node.operation.rounding == Rounding.TWICE
    scales = [float(np.float32(0.1)) * float(np.float32(each)) / float(np.float32(0.05))
              for each in (0.2, 0.3, 0.4)]
    assert node.operation.scales == tuple(scales)
    assert node.type.quantization == Quantization((float(np.float32(0.05)),), (-100,))
    assert node.origin == "CONV_2D 0"


def test_a_relu_of_its_own_is_bounds_or_another_scale_as_well():
    x, same = Tensor((4,), "int8", 0.1, 3), Tensor((4,), "int8", 0.1, 3)
    assert operations(read_tflite(single("RELU", [x], same), "relu")) == [Clamp]
    other = Tensor((4,), "int8", 0.2, -7)
    assert operations(read_tflite(single("RELU", [x], other), "relu")) == [Rescale]


def test_functions_of_eight_bits_are_tables():
    x, y = Tensor((4,), "int8", 0.1, 3), Tensor((4,), "int8", 1 / 256, -128)
    assert operations(read_tflite(single("LOGISTIC", [x], y), "table")) == [Lookup]
    assert operations(read_tflite(single("LOGISTIC", [Tensor((4,))], Tensor((4,))), "real")) == [
        Unary]


def test_several_results_are_several_slices():
    x = Tensor((4, 6))
    data = single("SPLIT", [Tensor.constant(1), x], [Tensor((4, 2))] * 3, "SplitOptions",
                  NumSplits=3)
    graph = read_tflite(data, "split")
    assert operations(graph) == [Slice] * 3
    assert len(graph.outputs) == 3


def test_unsigned_parts_of_other_scales_are_looked_up_and_joined():
    x, y = Tensor((2, 3), "uint8", 0.1, 3), Tensor((2, 3), "uint8", 0.2, 9)
    graph = read_tflite(single("CONCATENATION", [x, y], Tensor((4, 3), "uint8", 0.2, 9),
                               "ConcatenationOptions"), "concat")
    assert operations(graph) == [Lookup, Concat]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integer_weights_of_real_activations_become_real(dtype):
    rng = np.random.default_rng(1)
    stored = rng.integers(0, 100, (5, 7)).astype(dtype)
    scale, zero = (0.5, 0) if dtype == "int8" else (0.25, 31)
    w = Tensor.constant(stored, dtype, scale=scale, zero=zero)
    x = rng.normal(0, 1, (2, 7)).astype(np.float32)
    data = single("FULLY_CONNECTED", [Tensor((2, 7)), w], Tensor((2, 5)), "FullyConnectedOptions")
    graph = read_tflite(data, "hybrid")
    assert operations(graph) == [MatMul]
    assert [str(each.type) for each in graph.constants.values()] == ["float32[7, 5]"]
    right = x @ ((stored.astype(np.float32) - zero) * scale).T
    np.testing.assert_allclose(run(data, x)[0], right, rtol=1e-5, atol=1e-5)


def test_a_constant_enters_the_graph_once_in_the_order_that_is_read():
    w = Tensor.constant(np.ones((2, 3, 4)), "int8", scale=0.5)
    x, y = Tensor((2, 5, 4), "int8", 0.1), Tensor((2, 5, 3), "int8", 1.0)
    data = single("BATCH_MATMUL", [x, w], y, "BatchMatMulOptions", AdjY=True)
    graph = read_tflite(data, "constant")
    assert [each.type.shape for each in graph.constants.values()] == [(2, 4, 3)]


def test_weights_of_sixteen_bit_reals_are_what_tflite_reads():
    rng = np.random.default_rng(2)
    w = Tensor.constant(rng.normal(0, 1, (3, 1, 2, 2)), "float16")
    b = Tensor.constant(rng.normal(0, 1, 3), "float32")
    tensors = [Tensor((1, 4, 4, 2)), w, Tensor(w.shape), b, Tensor((1, 4, 4, 3))]
    data = file_of(tensors, [
        Operator("DEQUANTIZE", [1], [2], "DequantizeOptions"),
        Operator("CONV_2D", [0, 2, 3], [4], "Conv2DOptions", {"StrideH": 1, "StrideW": 1})],
        [0], [4])
    x = rng.normal(0, 1, (1, 4, 4, 2)).astype(np.float32)
    np.testing.assert_allclose(run(data, x)[0], reference(data, [x])[0], rtol=1e-5, atol=1e-5)


def test_weights_of_four_bits_are_what_tflite_reads():
    """Two are in a byte, the first in its low half."""
    rng = np.random.default_rng(3)
    stored = rng.integers(-7, 8, (3, 8))
    halves = stored.reshape(-1, 2) & 15
    w = Tensor((3, 8), "int4", 0.1, data=(halves[:, 0] | halves[:, 1] << 4).astype(np.uint8))
    x, y = Tensor((2, 8), "int8", 0.1, 3), Tensor((2, 3), "int8", 0.3, -4)
    data = single("FULLY_CONNECTED", [x, w], y, "FullyConnectedOptions")
    array = rng.integers(-128, 128, (2, 8)).astype(np.int8)
    np.testing.assert_array_equal(run(data, array)[0], reference(data, [array])[0], strict=True)
