"""A graph as an ONNX model, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...base.checked_values import list_names, show_name
from ...base.errors import MicrotronError
from ...compiler.graph.graph import Graph, Node
from ...compiler.graph.types import TensorType
from . import float_rules, move_rules, window_rules  # noqa: F401  (registers rules)
from .writer import IR_VERSION, OPSET, PRODUCER, RULES, Writer

if TYPE_CHECKING:
    import onnx
    from onnx import ValueInfoProto


def write_onnx(graph: Graph, notes: dict[str, str]) -> onnx.ModelProto:
    """The graph as a model that is checked. Notes go into its metadata."""
    import onnx
    from onnx import helper

    missing = sorted({type(node.operation).title() for node in graph.nodes.values()
                      if type(node.operation) not in RULES})
    if missing:
        raise MicrotronError(f"{show_name(graph.name or 'the model')}: {list_names(missing)} "
                             f"cannot be written as ONNX; compile it with its samples instead")
    writer = Writer(graph)
    for name, node in graph.nodes.items():
        _write_node(writer, name, node)
    read = {each for node in writer.nodes for each in node.input}
    for name, constant in graph.constants.items():
        if name in read or name in graph.outputs:
            writer.tensor(name, constant.array)
    inputs = [_value(name, type_) for name, type_ in graph.inputs.items()]
    outputs = [_value(name, graph.type_of(name)) for name in graph.outputs]
    found = helper.make_model(
        helper.make_graph(writer.nodes, graph.name or "model", inputs, outputs,
                          list(writer.constants.values())),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name=PRODUCER)
    helper.set_model_props(found, notes)
    onnx.checker.check_model(found)
    return found


def _write_node(writer: Writer, name: str, node: Node) -> None:
    RULES[type(node.operation)](writer, name, node.operation)


def _value(name: str, type_: TensorType) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype)), list(type_.shape))
