"""Small ONNX models, and what ONNX Runtime makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

TYPES = {each: helper.np_dtype_to_tensor_dtype(np.dtype(each)) for each in (
    "float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "bool")}
RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Known:
    """An operand that is a constant."""

    array: np.ndarray


def known(values, dtype=None):
    return Known(np.asarray(values, dtype))


def real(*shape, low=-2.0, high=2.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def whole(*shape, low=-128, high=128, dtype="int8"):
    return RANDOM.integers(low, high, shape).astype(dtype)


def weights(*shape):
    """Weights of 7 bits: on x86-64 without VNNI, ONNX Runtime adds pairs of products in 16 bits,
    which saturate with weights of 8."""
    return whole(*shape, low=-64, high=64)


def bytes_(*shape):
    return whole(*shape, low=0, high=256, dtype="uint8")


def truth(*shape):
    return RANDOM.integers(0, 2, shape).astype(bool)


def node_model(op, operands, attributes=None, *, outputs=1, opset=17, domain=""):
    """A model of one node. Operands are arrays (inputs), Known (constants) or None (left out)."""
    inputs, constants, names = [], [], []
    for number, each in enumerate(operands):
        name = "" if each is None else f"x{number}"
        names.append(name)
        if isinstance(each, Known):
            constants.append(numpy_helper.from_array(each.array, name))
        elif each is not None:
            inputs.append(helper.make_tensor_value_info(name, TYPES[str(each.dtype)], each.shape))
    results = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(op, names, results, "node", domain=domain, **attributes or {})
    return graph_model([node], inputs, results, constants, opset=opset)


def graph_model(nodes, inputs, outputs, constants=(), *, opset=17):
    """A model of some nodes."""
    graph = helper.make_graph(nodes, "graph", inputs, [
        helper.make_empty_tensor_value_info(name) for name in outputs],
        list(constants))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 8
    return model


def runtime(data, **settings):
    """A session of ONNX Runtime that optimizes nothing."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"],
                                        **settings)


# Operators with products of activations and weights: the places of weights and their zero point.
WEIGHTS = {"QLinearConv": (3, 5), "QLinearMatMul": (3, 5), "QGemm": (3, 5)}


def with_unsigned_weights(model):
    """A copy of a model with weights of int8 as uint8, and zero points that are 128 higher. That is
    the same model; but on x86-64 without VNNI, ONNX Runtime saturates sums of uint8 × int8."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    stored = {each.name: each for each in copy.graph.initializer}
    for node in copy.graph.node:
        for place in WEIGHTS.get(node.op_type, ()):
            array = numpy_helper.to_array(stored[node.input[place]])
            if array.dtype == np.int8:
                name = f"{node.input[place]}.unsigned"
                if name not in stored:
                    stored[name] = numpy_helper.from_array(
                        (array.astype(np.int16) + 128).astype(np.uint8), name)
                    copy.graph.initializer.append(stored[name])
                node.input[place] = name
    return copy


def with_all_outputs(model):
    """A copy of a model in which every tensor is an output."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    there = {each.name for each in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in there:
                copy.graph.output.append(helper.make_empty_tensor_value_info(name))
                there.add(name)
    return copy
