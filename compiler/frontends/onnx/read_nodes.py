"""Nodes of a model, one after the other. An operator without a rule of its own is read as the
function that the model, or ONNX itself, defines it as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onnx import FunctionProto, NodeProto, TypeProto, defs, helper

from ....base.checked_values import list_names, near_misses, quote
from ...graph.types import GraphError
from .call import Call
from .checks import check_operand_types, node_problems
from .inline_bodies import function_nodes
from .onnx_file import number_of
from .operator_table import DOMAINS, OPERATORS, Operator
from .reader import Reader, locate_error

MOST_PROBLEMS = 40          # that one message lists
DEEPEST = 16                # functions in functions


def read_nodes(reader: Reader, nodes: Sequence[NodeProto], opset: int, depth: int = 0) -> None:
    """Add what some nodes compute to a graph."""
    problems = list(problems_of(reader, nodes, opset))
    if problems:
        raise GraphError("; ".join(problems))
    for node in nodes:
        reader.inside = _place(node) if depth else ""
        if depth:
            reader.count_expanded()
        known = _rule(reader, node)
        try:
            if known is None:
                _expand(reader, node, opset, depth)
            else:
                _read_node(reader, node, known, opset, depth)
        except GraphError as error:
            if depth:                   # the outermost node says where, and the innermost
                raise
            inner = f"{reader.inside}: " if reader.inside else ""
            raise locate_error(error, f"{_place(node)}: {inner}{error}") from None
    reader.inside = ""


def _read_node(reader: Reader, node: NodeProto, known: Operator, opset: int, depth: int) -> None:
    """Read a node by its operator's rule."""
    check_operand_types(reader, node, opset)
    call = Call(node, reader, opset, depth)
    known.handler(call)
    if known.domain and any(node.input[call.asked:]):       # ONNX has no definition to ask
        raise GraphError(f"there are {len(node.input)} operands, but {known.title} has at most "
                         f"{call.asked}")


def _place(node: NodeProto) -> str:
    """A node as messages call it."""
    name = node.name or next(filter(None, node.output), "")
    return f"{node.op_type} {quote(name)}"


def _domain(node: NodeProto) -> str:
    return DOMAINS.get(node.domain, node.domain)


def _rule(reader: Reader, node: NodeProto) -> Operator | None:
    """How an operator is read, unless it is as a function."""
    if (_domain(node), node.op_type) in reader.functions:
        return None
    return OPERATORS.get((_domain(node), node.op_type))


def problems_of(reader: Reader, nodes: Iterable[NodeProto], opset: int) -> Iterator[str]:
    """Everything in some nodes that cannot be read, each once, with the nodes that have it."""
    found: dict[str, list[str]] = {}
    unknown: dict[str, str] = {}            # problems, and names of operators like these
    for node in nodes:
        domain = _domain(node)
        known = _rule(reader, node)
        title = f"{domain}.{node.op_type}" if domain else node.op_type
        place = quote(node.name or next(filter(None, node.output), ""))
        if known is None:
            if (domain, node.op_type) not in reader.functions and (
                    _schema(node, opset) is None):
                problem = f"operator {quote(title)} is unknown"
                unknown.setdefault(problem, near_misses(
                    node.op_type, (name for _, name in OPERATORS)))
                found.setdefault(problem, []).append(place)
            continue
        for problem in node_problems(node, opset):
            found.setdefault(problem, []).append(place)
        first, last = known.versions
        if not domain and not first <= opset <= last:
            found.setdefault(f"{title} is supported from opset {first} to {last}, but this is "
                             f"{opset}", []).append(place)
        for each in node.attribute:
            if each.name not in known.attributes:
                found.setdefault(
                    f"{title} has an unknown attribute {quote(each.name)}, known are "
                    f"{', '.join(sorted(known.attributes)) or 'none'}", []).append(place)
    for problem, places in list(found.items())[:MOST_PROBLEMS]:
        yield f"{problem} ({list_names(places)}){unknown.get(problem, '')}"
    if unknown:
        yield "docs/models.md lists the operators that are known"


def _schema(node: NodeProto, opset: int) -> Any:
    """ONNX's definition of an operator, if it is a function of others. (Types of ONNX's own are
    incomplete.)"""
    try:
        schema: Any = (defs.get_schema(node.op_type, node.domain) if _domain(node)
                       else defs.get_schema(node.op_type, opset))
    except (defs.SchemaError, TypeError):       # a name that is no UTF-8 comes as bytes
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _expand(reader: Reader, node: NodeProto, opset: int, depth: int) -> None:
    """Read a node as the function that it is."""
    if depth >= DEEPEST:
        raise GraphError(f"functions call functions more than {DEEPEST} deep")
    function = reader.functions.get((_domain(node), node.op_type)) or _function_body(reader, node,
                                                                                     opset)
    inner = next((each.version for each in function.opset_import if each.domain in DOMAINS), opset)
    prefix = reader.prefix(next(filter(None, node.output), "unnamed"))
    read_nodes(reader, function_nodes(function, node, prefix), inner, depth + 1)


def _function_body(reader: Reader, node: NodeProto, opset: int) -> FunctionProto:
    """The function that ONNX defines an operator as. Some depend on the types of operands."""
    schema = _schema(node, opset)
    assert schema is not None, "others are problems"
    if schema.has_function:
        data = schema.get_function_with_opset_version(
            _version(schema.function_opset_versions, opset))
    else:
        types = [_type(reader, name).SerializeToString() for name in node.input]
        try:
            data = schema.get_context_dependent_function_with_opset_version(
                _version(schema.context_dependent_function_opset_versions, opset),
                node.SerializeToString(), types)
        except Exception:           # of any kind that ONNX's library has
            data = b""
    if not data:
        raise GraphError("ONNX has no function for these operands and attributes")
    function = FunctionProto()
    function.ParseFromString(data)
    function.attribute_proto.extend(each.default_value for each in schema.attributes.values()
                                    if each.default_value.name)
    return function


def _version(versions: Sequence[int], opset: int) -> int:
    """The newest definition that an opset has, or, as an operator means the same in all of them,
    the oldest after it."""
    return max((each for each in versions if each <= opset), default=min(versions))


def _type(reader: Reader, name: str) -> TypeProto:
    if not name:
        return TypeProto()
    type_ = reader.builder.type_of(reader.tensor(name))
    return helper.make_tensor_type_proto(number_of(type_.dtype), type_.shape)
