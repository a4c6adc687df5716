"""Bodies of If, Loop and Scan: graphs in attributes, read where they are called."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, NodeProto

from ...graph.types import GraphError
from .call import Call
from .inline_bodies import inline_nodes
from .onnx_file import array_of
from .read_nodes import DEEPEST, read_nodes


def body_of(call: Call, name: str) -> GraphProto:
    """An attribute that is a graph."""
    found = call.attributes.get(name)
    if found is None or found.type != AttributeProto.GRAPH:
        raise GraphError(f"{name} must be a graph")
    if call.depth >= DEEPEST:
        raise GraphError(f"bodies are in bodies more than {DEEPEST} deep")
    body: GraphProto = found.g
    return body


def read_body(call: Call, body: GraphProto, operands: list[str]) -> list[str]:
    """Read the nodes of a body with names of their own. Operands and results are tensors of the
    graph."""
    if len(operands) != len(body.input):
        raise GraphError(f"a body has {len(body.input)} inputs, but gets {len(operands)}")
    reader, names = call.reader, {}
    prefix = reader.prefix(call.result)
    reader.count_expanded()             # an empty body too
    for value, tensor in zip(body.input, operands, strict=True):
        names[value.name] = f"{prefix}{value.name}"
        reader.define(names[value.name], tensor)
    for constant in body.initializer:
        names[constant.name] = f"{prefix}{constant.name}"
        reader.arrays[names[constant.name]] = array_of(constant)
    nodes: list[NodeProto] = list(inline_nodes(body.node, names, prefix))
    read_nodes(reader, nodes, call.opset, call.depth + 1)
    return [reader.tensor(names.get(each.name, each.name)) for each in body.output]
