"""Nodes inside nodes: the body of a function or of a loop, with names that no other tensor has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from ...graph.types import GraphError


def inline_nodes(nodes: Iterable[NodeProto], names: dict[str, str], prefix: str,
                 attributes: Mapping[str, AttributeProto | None] |
                 None = None) -> Iterator[NodeProto]:
    """Copies of nodes. `names` says what tensors from outside are called, and learns what those are
    called that the nodes compute; `attributes` are what a function's own stand for."""
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [names.get(each, each) for each in node.input]
        for each in node.output:
            if each:
                names.setdefault(each, f"{prefix}{each}")
        copy.output[:] = [names.get(each, each) for each in node.output]
        del copy.attribute[:]
        copy.attribute.extend(_attributes(node, names, attributes or {}))
        yield copy


def _attributes(node: NodeProto, names: Mapping[str, str],
                attributes: Mapping[str, AttributeProto | None]) -> Iterator[AttributeProto]:
    for each in node.attribute:
        copy = AttributeProto()
        copy.CopyFrom(each)
        if each.ref_attr_name:
            found = attributes.get(each.ref_attr_name)
            if found is None:               # neither given nor with a default
                continue
            copy.CopyFrom(found)
            copy.name = each.name
        elif each.type == AttributeProto.GRAPH:
            _rename(copy.g, names, attributes)
        yield copy


def _rename(graph: GraphProto, names: Mapping[str, str],
            attributes: Mapping[str, AttributeProto | None]) -> None:
    """Change what a graph inside a node reads from outside."""
    own = {each.name for each in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    outer = {name: other for name, other in names.items() if name not in own}
    for node in graph.node:
        node.input[:] = [outer.get(each, each) for each in node.input]
        changed = list(_attributes(node, outer, attributes))
        del node.attribute[:]
        node.attribute.extend(changed)
    for value in graph.output:
        value.name = outer.get(value.name, value.name)


def function_nodes(function: FunctionProto, node: NodeProto, prefix: str) -> list[NodeProto]:
    """The nodes that a node which calls a function stands for."""
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        raise GraphError(f"there are {len(node.input)} operands and {len(node.output)} results, "
                         f"but the function has {len(function.input)} and {len(function.output)}")
    names = dict.fromkeys(function.input, "")
    names |= dict(zip(function.input, node.input, strict=False))
    names |= {inside: outside for inside, outside
              in zip(function.output, node.output, strict=False) if outside}
    attributes: dict[str, AttributeProto | None] = dict.fromkeys(function.attribute)
    attributes |= {each.name: each for each in (*function.attribute_proto, *node.attribute)}
    return list(inline_nodes(function.node, names, prefix, attributes))
