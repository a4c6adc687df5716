"""What ONNX asks of a model: what its checker and runtimes refuse is no plausible answer here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, defs

from ....base.checked_values import quote
from ...graph.types import GraphError
from .onnx_file import number_of, type_name
from .operator_table import DOMAINS
from .reader import Reader

# The field that holds an attribute's value, by its type.
VALUES = {AttributeProto.FLOAT: "f", AttributeProto.INT: "i", AttributeProto.STRING: "s",
          AttributeProto.TENSOR: "t", AttributeProto.GRAPH: "g", AttributeProto.FLOATS: "floats",
          AttributeProto.INTS: "ints", AttributeProto.STRINGS: "strings",
          AttributeProto.TENSORS: "tensors", AttributeProto.GRAPHS: "graphs"}
TYPE_NAMES = {"float32": "float", "float64": "double"}      # as ONNX's definitions have them


def check_model(model: ModelProto) -> int:
    """The opset of a model whose versions make sense."""
    if not 0 < model.ir_version <= onnx.IR_VERSION:
        raise GraphError(f"the IR version is {model.ir_version}, but must be from 1 to "
                         f"{onnx.IR_VERSION}")
    versions: dict[str, int] = {}
    for each in model.opset_import:
        domain, version = DOMAINS.get(each.domain, each.domain), int(each.version)
        if versions.setdefault(domain, version) != version:
            raise GraphError(f"opsets {versions[domain]} and {version} of the domain "
                             f"{quote(each.domain)} are both imported, but must be one")
    opset, newest = versions.get("", 0), defs.onnx_opset_version()
    if not 0 < opset <= newest:
        raise GraphError(f"this is opset {opset}, but the newest that is known is {newest}"
                         if opset > newest else f"the opset is {opset}, but must be from 1 on")
    return opset


def check_defaults(graph: GraphProto) -> None:
    """Refuse inputs that are declared otherwise than the tensors that they have as defaults."""
    defaults = {each.name: each for each in graph.initializer}
    for value in graph.input:
        tensor = defaults.get(value.name)
        if tensor is None or not value.type.HasField("tensor_type"):
            continue
        type_ = value.type.tensor_type
        sizes = [dim.dim_value if dim.dim_value > 0 else None for dim in type_.shape.dim]
        fits = len(sizes) == len(tensor.dims) and all(
            size in (None, extent) for size, extent in zip(sizes, tensor.dims, strict=True))
        if type_.elem_type not in (0, tensor.data_type) or (type_.HasField("shape") and not fits):
            raise GraphError(
                f"the input {quote(value.name)} is declared as {type_name(type_.elem_type)} of "
                f"shape {quote(sizes)}, but its default is {type_name(tensor.data_type)} of "
                f"shape {quote(list(tensor.dims))}")


def check_outputs(graph: GraphProto, dtypes: Mapping[str, str]) -> None:
    """Refuse outputs whose declared types are not those of what is computed. (Shapes may differ:
    exporters often declare wrong ones, and runtimes take no notice.)"""
    for value in graph.output:
        kind = value.type.WhichOneof("value")
        declared = value.type.tensor_type.elem_type
        if kind not in (None, "tensor_type"):
            raise GraphError(f"the output {quote(value.name)} is declared as a {kind[:-5]}, but is "
                             f"a tensor")
        if declared and declared != number_of(dtypes[value.name]):
            raise GraphError(f"the output {quote(value.name)} is declared as "
                             f"{type_name(declared)}, but is "
                             f"{type_name(number_of(dtypes[value.name]))}")


def node_problems(node: NodeProto, opset: int) -> Iterator[str]:
    """What of a node contradicts ONNX whatever its operands are."""
    for name, count in Counter(each.name for each in node.attribute).items():
        if count > 1:
            yield f"{node.op_type} has the attribute {quote(name)} {count} times"
    for each in node.attribute:
        wrong = [field for type_, field in VALUES.items() if type_ != each.type
                 and (len(getattr(each, field)) if field.endswith("s") and len(field) > 1
                      else each.HasField(field))]
        if wrong and each.type in VALUES:
            yield f"the attribute {quote(each.name)} of {node.op_type} has several values"
    schema = schema_of(node.op_type, DOMAINS.get(node.domain, node.domain), opset)
    if schema is None:
        return
    for what, count, least, most in (
            ("operands", len(node.input), schema.min_input, schema.max_input),
            ("results", len(node.output), schema.min_output, schema.max_output)):
        if count > most:
            yield (f"{node.op_type} has {count} {what}, but must have "
                   f"{most if least == most else f'{least} to {most}'}")


@lru_cache(4096)
def schema_of(name: str, domain: str, opset: int) -> defs.OpSchema | None:
    """ONNX's definition of an operator in an opset, if it has one."""
    if domain:
        return None
    try:
        return defs.get_schema(name, opset, domain)
    except (defs.SchemaError, TypeError):       # a name that is no UTF-8 comes as bytes
        return None


def check_operand_types(reader: Reader, node: NodeProto, opset: int) -> None:
    """Refuse operands of types that the operator does not take, or that must be alike but are
    not."""
    schema = schema_of(node.op_type, DOMAINS.get(node.domain, node.domain), opset)
    if schema is None or not schema.inputs:
        return
    alike: dict[str, tuple[int, str]] = {}
    for number, name in enumerate(node.input):
        if not name:
            continue
        formal = schema.inputs[min(number, len(schema.inputs) - 1)]
        dtype = reader.dtype(name)
        if f"tensor({TYPE_NAMES.get(dtype, dtype)})" not in formal.types:
            raise GraphError(f"operand {number} is {dtype}, which {node.op_type} does not take in "
                             f"opset {opset}")
        if "(" in formal.type_str or not formal.is_homogeneous:
            continue
        first, other = alike.setdefault(formal.type_str, (number, dtype))
        if other != dtype:
            raise GraphError(f"operands {first} and {number} are {other} and {dtype}, but must be "
                             f"alike")
