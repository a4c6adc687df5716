"""Each layer of a quantized model beside another runtime's execution of the same file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..compiler.graph.graph import Graph, Node
from ..compiler.passes.pipeline import run_passes
from .execution import GraphRunner
from .parameters import Array

GIVEN = " given"                # what a tensor is called where it is read


def layer_steps(graph: Graph, stored: Mapping[str, Array],
                sample: Mapping[str, Array]) -> dict[str, int]:
    """By how many steps our integers differ, for each int8 tensor of a QDQ graph. Every layer reads
    the other runtime's integers, so that differences do not add up."""
    names = [name for name, node in graph.nodes.items() if name in stored and node.type.size]
    given = {f"{name}{GIVEN}": np.ascontiguousarray(stored[name]) for name in names}
    found = GraphRunner(run_passes(cut_graph(graph, names)))({**sample, **given})
    return {name: int(np.abs(found[name].astype(np.int32) - stored[name]).max())
            for name in names}


def cut_graph(graph: Graph, names: list[str]) -> Graph:
    """The graph with some tensors as its outputs, and as inputs wherever they are read."""
    cut = set(names)

    def read(name: str) -> str:
        return f"{name}{GIVEN}" if name in cut else name

    nodes = {name: Node(node.operation.rename_operands(read), node.type, node.origin)
             for name, node in graph.nodes.items()}
    inputs = {**graph.inputs, **{read(name): graph.type_of(name) for name in names}}
    return replace(graph, inputs=inputs, nodes=nodes, outputs=tuple(names))


def stored_by_onnxruntime(data: bytes, sample: Mapping[str, Array]) -> dict[str, Array]:
    """All int8 tensors of a QDQ file, as ONNX Runtime computes them without optimizations."""
    import onnx
    import onnxruntime

    model = onnx.load_from_string(data)
    names = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(
            name, onnx.TensorProto.INT8, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, dict(sample)), strict=True))
