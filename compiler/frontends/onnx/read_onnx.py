"""From the bytes of an ONNX file to a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto

from ....base.checked_values import list_names, quote, show_name
from ...graph.builder import Builder
from ...graph.graph import Graph
from ...graph.operations.data_movement.shape import Reshape
from ...graph.types import GraphError, Shape
from ..given_inputs import GivenInputs
from .checks import check_defaults, check_model, check_outputs
from .inputs import OpenShapesError, read_inputs
from .onnx_file import DTYPES, HALVES, array_of, parse_model, type_name
from .operator_table import supported_operators
from .propose_inputs import propose_options
from .read_nodes import problems_of, read_nodes
from .reader import Reader, locate_error
from .rules import (  # noqa: F401  (makes operators known)
    arithmetic,
    bitwise,
    constants,
    control_flow,
    data_movement,
    einsum,
    gather_scatter,
    matrices,
    norms,
    recurrence,
    reductions,
    spectra,
)
from .rules.quantization import integer_products, microsoft, quantize_linear  # noqa: F401
from .rules.vision import convolutions, image_operators, pools, resizes  # noqa: F401

__all__ = ["read_onnx", "supported_operators"]


def read_onnx(data: bytes, name: str = "", shapes: Mapping[str, Shape] | None = None,
              values: Mapping[str, object] | None = None) -> Graph:
    """The network in an ONNX file. `shapes` are those of inputs whose sizes the file leaves open,
    `values` take the place of inputs; `name` is what messages call the file."""
    try:
        return _read_or_propose(parse_model(data), name, GivenInputs(shapes or {}, values or {}))
    except GraphError as error:
        text = f"{show_name(name)}: {error}" if name else str(error)
        raise locate_error(error,
                           "".join(each if each.isprintable() else "?" for each in text)) from None


def _read_or_propose(model: ModelProto, name: str, given: GivenInputs) -> Graph:
    try:
        return _read(model, name, given)
    except OpenShapesError as error:
        options = propose_options(model.graph, given, lambda each: _read(model, name, each))
        raise GraphError(f"{error}; give one, as in {options}") from None


def _read(model: ModelProto, name: str, given: GivenInputs) -> Graph:
    opset, graph = check_model(model), model.graph
    reader = Reader(Builder(name), {(each.domain, each.name): each for each in model.functions})
    problems = [*_bad_constants(graph), *problems_of(reader, graph.node, opset)]
    if problems:
        raise GraphError("; ".join(problems))
    for tensor in graph.initializer:
        if tensor.name in reader.arrays:
            raise GraphError(f"there are two tensors {quote(tensor.name)}")
        reader.arrays[tensor.name] = array_of(tensor, halves=True)
        if tensor.data_type in HALVES:
            reader.halves.add(tensor.name)
    check_defaults(graph)
    read_inputs(reader, graph, given)
    read_nodes(reader, graph.node, opset)
    names = dict.fromkeys(each.name for each in graph.output)       # one may be listed twice
    outputs = {name: _output(reader, name) for name in names}
    check_outputs(graph, {name: reader.builder.type_of(each).dtype
                          for name, each in outputs.items()})
    return reader.builder.graph(tuple(outputs.values()))


def _bad_constants(graph: GraphProto) -> Iterator[str]:
    """What of a model's constants cannot be read."""
    found: dict[str, list[str]] = {}
    for tensor in graph.initializer:
        if tensor.data_type not in (*DTYPES, *HALVES):
            found.setdefault(f"type {type_name(tensor.data_type)} is unknown, known are "
                             f"{', '.join(map(type_name, (*DTYPES, *HALVES)))}", []).append(
                                 quote(tensor.name))
    yield from (f"{problem} ({list_names(places)})" for problem, places in found.items())
    if graph.sparse_initializer:
        yield "sparse tensors are not supported"


def _output(reader: Reader, name: str) -> str:
    """An output under its own name, also if it is a tensor that has another one."""
    if name in reader.halves:
        raise GraphError(f"the output {quote(name)} has 4 bits, but outputs have 8 or more")
    tensor = reader.tensor(name)
    if tensor == name:
        return name
    type_ = reader.builder.type_of(tensor)
    return reader.builder.add(name, Reshape(x=tensor, shape=type_.shape),
                              quantization=type_.quantization)
