"""What the benchmark of the CPU measures: ONNX models of one node, and numbers for their inputs.

Layers of ResNet and MobileNet, matrix products from square ones to those of attention, in float32
and in bytes, and the nodes that the benchmark networks leave to the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from microtron.base.arrays import Array

from .cpu_nodes import nodes

OPSET, IR_VERSION = 20, 10
NETWORKS = ("vit_tiny", "bert_block", "mobilenet_v2", "resnet18")
OF_THE_ACCELERATOR = ("Conv", "MatMul", "Gemm", "Constant", "Shape", "Identity")
SMALLEST = 4096                 # elements of a node's result: below, calls alone are measured


@dataclass(frozen=True)
class Case:
    """A model and its inputs."""

    name: str
    kind: str
    model: ModelProto
    inputs: Mapping[str, Array] = field(hash=False)


def cases(networks: Sequence[str] = NETWORKS) -> Iterator[Case]:
    yield from _matrices()
    yield from _convolutions()
    for name, kind, node, inputs, constants in nodes():
        yield Case(name, kind, _inferred(node, inputs, constants), inputs)
    yield from _nodes(networks)


def _numbers(shape: tuple[int, ...], dtype: str) -> Array:
    rng = np.random.default_rng(prod(shape))
    if dtype == "float32":
        return rng.normal(size=shape).astype(np.float32)
    # Weights have seven bits: ONNX Runtime saturates sums of two products to 16 bits on x86-64
    # without VNNI.
    low, high = (0, 255) if dtype == "uint8" else (-64, 63)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def _model(node: NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array],
           dtype: int, shape: Sequence[int]) -> ModelProto:
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype),
                                           each.shape) for name, each in inputs.items()]
    result = helper.make_tensor_value_info(node.output[0], dtype, shape)
    return _of_node(node, given, [result], constants)


def _of_node(node: NodeProto, given: Sequence[ValueInfoProto],
             results: Sequence[ValueInfoProto], constants: Mapping[str, Array]) -> ModelProto:
    graph = helper.make_graph([node], "node", given, results, [
        numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                             ir_version=IR_VERSION)


def _inferred(node: NodeProto, inputs: Mapping[str, Array],
              constants: Mapping[str, Array]) -> ModelProto:
    """A model that gives all results of a node, whose types follow from its inputs'."""
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype),
                                           each.shape) for name, each in inputs.items()]
    plain = _of_node(node, given, [], constants)
    found = onnx.shape_inference.infer_shapes(plain, data_prop=True).graph.value_info
    types = {each.name: each for each in found}
    return _of_node(node, given, [types[each] for each in node.output], constants)


MATRICES = ((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (197, 768, 192), (197, 192, 768),
            (128, 768, 768), (128, 3072, 768), (1, 1000, 2048))     # rows, columns, depth
ATTENTION = ((12, 128, 128, 64), (12, 128, 64, 128), (3, 197, 197, 64))


def _matrices() -> Iterator[Case]:
    for rows, columns, depth in MATRICES:
        size = f"{rows}×{depth}×{columns}"
        x, w = _numbers((rows, depth), "float32"), _numbers((depth, columns), "float32")
        yield Case(f"matmul {size}", "float32 matrix product", _model(
            helper.make_node("MatMul", ["x", "w"], ["y"]), {"x": x}, {"w": w},
            onnx.TensorProto.FLOAT, (rows, columns)), {"x": x})
        x, w = _numbers((rows, depth), "uint8"), _numbers((depth, columns), "int8")
        constants = {"w": w, **_scales(("x", "uint8"), ("w", "int8"), ("y", "uint8"))}
        yield Case(f"qlinear matmul {size}", "int8 matrix product", _model(
            helper.make_node("QLinearMatMul", ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero",
                                               "y_scale", "y_zero"], ["y"]),
            {"x": x}, constants, onnx.TensorProto.UINT8, (rows, columns)), {"x": x})
    for heads, rows, columns, depth in ATTENTION:
        x = _numbers((heads, rows, depth), "float32")
        w = _numbers((heads, depth, columns), "float32")
        yield Case(f"attention {heads}×{rows}×{depth}×{columns}", "float32 matrix product", _model(
            helper.make_node("MatMul", ["x", "w"], ["y"]), {"x": x, "w": w}, {},
            onnx.TensorProto.FLOAT, (heads, rows, columns)), {"x": x, "w": w})


def _scales(*tensors: tuple[str, str]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, dtype in tensors:
        scale, zero = (0.02, 0) if name == "w" else (4.0 if name == "y" else 0.05, 7)
        found[f"{name}_scale"] = np.array(scale, np.float32)
        found[f"{name}_zero"] = np.array(zero, dtype)
    return found


# side, input channels, output channels, kernel, stride, groups
LAYERS = ((224, 3, 64, 7, 2, 1), (56, 64, 64, 3, 1, 1), (56, 64, 256, 1, 1, 1),
          (28, 128, 128, 3, 1, 1), (14, 256, 256, 3, 1, 1), (14, 1024, 256, 1, 1, 1),
          (7, 512, 512, 3, 1, 1), (112, 32, 32, 3, 1, 32), (56, 144, 144, 3, 2, 144),
          (28, 192, 192, 3, 1, 192), (14, 96, 576, 1, 1, 1), (56, 24, 144, 1, 1, 1),
          (28, 128, 128, 3, 1, 4))


def _convolutions() -> Iterator[Case]:
    for side, channels, outputs, kernel, stride, groups in LAYERS:
        name = f"{side}²×{channels}→{outputs}, {kernel}²" + (f"/{stride}" if stride > 1 else "") + (
            f", {groups} groups" if groups > 1 else "")
        settings: dict[str, Any] = {"pads": [kernel // 2] * 4, "strides": [stride] * 2,
                                    "group": groups}
        shape, filters = (1, channels, side, side), (outputs, channels // groups, kernel, kernel)
        result = (1, outputs, -(-side // stride), -(-side // stride))
        depthwise = "depthwise " if groups == channels else ""
        x, w = _numbers(shape, "float32"), _numbers(filters, "float32")
        yield Case(f"conv {name}", f"float32 {depthwise}convolution", _model(
            helper.make_node("Conv", ["x", "w"], ["y"], **settings), {"x": x}, {"w": w},
            onnx.TensorProto.FLOAT, result), {"x": x})
        x, w = _numbers(shape, "uint8"), _numbers(filters, "int8")
        constants = {"w": w, **_scales(("x", "uint8"), ("w", "int8"), ("y", "uint8"))}
        yield Case(f"qlinear conv {name}", f"int8 {depthwise}convolution", _model(
            helper.make_node("QLinearConv", ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero",
                                             "y_scale", "y_zero"], ["y"], **settings),
            {"x": x}, constants, onnx.TensorProto.UINT8, result), {"x": x})


def _nodes(networks: Sequence[str]) -> Iterator[Case]:
    """Each node of some networks that the accelerator does not take, once for each size."""
    from models.catalogue import MODELS

    seen: set[str] = set()
    with TemporaryDirectory() as folder:
        for network in networks:
            path = Path(folder) / f"{network}.onnx"
            MODELS[network](path)
            for case in _nodes_of(onnx.shape_inference.infer_shapes(onnx.load(path))):
                if case.name not in seen:
                    seen.add(case.name)
                    yield case


def _nodes_of(model: ModelProto) -> Iterator[Case]:
    graph = model.graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    types = {each.name: each.type.tensor_type
             for each in (*graph.input, *graph.value_info, *graph.output)}
    for node in graph.node:
        inputs = [each for each in node.input if each and each not in constants]
        if node.op_type in OF_THE_ACCELERATOR or not inputs or (
                any(each not in types for each in (*inputs, node.output[0]))):
            continue
        shape = _shape(types[node.output[0]])
        if prod(shape) < SMALLEST:
            continue
        given = {each: _numbers(_shape(types[each]), str(np.dtype(
            helper.tensor_dtype_to_np_dtype(types[each].elem_type)))) for each in inputs}
        sizes = ", ".join("×".join(map(str, each.shape)) for each in given.values())
        yield Case(f"{node.op_type} {sizes}", "node", _model(
            node, given, {each: constants[each] for each in node.input if each in constants},
            types[node.output[0]].elem_type, shape), given)


def _shape(type_: TypeProto.Tensor) -> tuple[int, ...]:
    return tuple(each.dim_value for each in type_.shape.dim)
