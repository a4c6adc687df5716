"""Activations of QDQ models on the accelerator, against ONNX Runtime without optimizations."""

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.isa.config import tiny

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TABLES = replace(tiny, tables=8)
SHAPE = (1, 4, 8, 8)            # 256 numbers: every one of 8 bits


class Model:
    """A graph of ONNX with a Quantize and a Dequantize after each step."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind, *operands, **attributes):
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def quantized(self, x, scale, zero_point):
        number = len(self.nodes)
        known = (self.constant(f"s{number}", np.float32(scale)),
                 self.constant(f"z{number}", np.int8(zero_point)))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *known), *known)

    def save(self, path, output):
        tensor, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(self.nodes, "activations", [tensor("x", kind, SHAPE)],
                                       [tensor(output, kind, None)], self.constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
        model.ir_version = 9
        onnx.save(model, path)


def swish(model, x):
    return model.node("Mul", x, model.quantized(model.node("Sigmoid", x), 1 / 256, -128))


def gelu(model, x):
    root, one, half = (model.constant(name, np.float32(value)) for name, value in (
        ("root", 2**0.5), ("one", 1), ("half", 0.5)))
    error = model.node("Erf", model.node("Div", x, root))
    return model.node("Mul", model.node("Mul", x, model.node("Add", error, one)), half)


ACTIVATIONS = {"swish": swish, "gelu": gelu} | {
    kind: lambda model, x, kind=kind: model.node(kind, x) for kind in (
        "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Mish")}


def both_results(path, x):
    """The compiled model, its result and ONNX Runtime's."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    right, = onnxruntime.InferenceSession(str(path), options).run(None, {"x": x})
    model = microtron.compile(path, TABLES)
    found, = dict(model.run({"x": x}).outputs).values()
    return model, found, right


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_number_has_the_result_of_onnx_runtime(name, tmp_path):
    model = Model()
    x = model.quantized("x", 0.05, -4)
    output = model.quantized(ACTIVATIONS[name](model, x), 0.03, -90)
    model.save(tmp_path / "model.onnx", output)
    every = np.arange(-128, 128, dtype=np.float32).reshape(SHAPE)
    compiled, found, right = both_results(tmp_path / "model.onnx", np.float32(0.05) * (every + 4))
    np.testing.assert_array_equal(found, right)
    assert len(np.unique(found)) > 8
    assert len(compiled.host_nodes) == 2, "the conversions at its ends"


def test_a_convolution_with_swish_is_one_layer(tmp_path):
    model, rng = Model(), np.random.default_rng(2)
    x = model.quantized("x", 0.05, -4)
    weights = model.node("DequantizeLinear", model.constant("w", rng.integers(
        -60, 61, (8, 4, 3, 3)).astype(np.int8)), model.constant("ws", np.float32(0.01)))
    bias = model.node("DequantizeLinear", model.constant("b", rng.integers(
        -900, 900, 8).astype(np.int32)), model.constant("bs", np.float32(0.05) * np.float32(0.01)))
    sums = model.quantized(model.node("Conv", x, weights, bias, pads=[1] * 4), 0.1, 5)
    model.save(tmp_path / "model.onnx", model.quantized(swish(model, sums), 0.06, -90))
    x = rng.normal(0, 1.5, SHAPE).astype(np.float32)
    compiled, found, right = both_results(tmp_path / "model.onnx", x)
    assert len(compiled.host_nodes) == 2
    # Real sums next to a tie may be rounded to the other side.
    steps = np.abs(np.round((found - right) / 0.06))
    assert steps.max() <= 2
    assert np.mean(steps > 0) < 0.02
