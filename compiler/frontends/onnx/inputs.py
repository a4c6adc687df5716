"""Inputs of an ONNX model: what the file fixes, and what users add.

Exporters write an open size in three ways: by a name, by nothing, and (Paddle's) by −1 or 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ValueInfoProto

from ....base.checked_values import list_names, quote, show_name
from ...graph.types import GraphError, TensorType
from ..given_inputs import GivenInputs, check_shape, value_array
from .onnx_file import dtype_of
from .reader import Reader


class OpenShapesError(GraphError):
    """Inputs whose sizes neither the file nor the user fixes."""


def open_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """The inputs that have no default in the file."""
    known = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in known]


def read_inputs(reader: Reader, graph: GraphProto, given: GivenInputs) -> None:
    """Make a model's inputs known: as inputs of the graph, or as constants where a value is
    given."""
    inputs = open_inputs(graph)
    given.check_names(each.name for each in inputs)
    symbols = resolve_symbols(inputs, given)
    unknown = []
    for each in inputs:
        dtype = _dtype(each)
        if each.name in given.values:
            reader.arrays[each.name] = value_array(
                each.name, given.values[each.name],
                given.shapes.get(each.name, sizes_of(each, symbols)), dtype)
            continue
        sizes = given.shapes.get(each.name, sizes_of(each, symbols))
        if sizes is None or None in sizes:
            unknown.append(each.name)
        else:
            type_ = TensorType(tuple(size or 0 for size in sizes), dtype)
            reader.names[each.name] = reader.builder.input(each.name, type_)
    if unknown:
        plural = len(unknown) > 1
        raise OpenShapesError(f"the input{'s' * plural} "
                              f"{list_names([show_name(each) for each in unknown])} "
                              f"{'have' if plural else 'has'} no fixed shape")


def _dtype(value: ValueInfoProto) -> str:
    if not value.type.HasField("tensor_type"):
        raise GraphError(f"the input {quote(value.name)} is no tensor")
    return dtype_of(value.type.tensor_type.elem_type)


def sizes_of(value: ValueInfoProto,
             symbols: Mapping[str, int]) -> tuple[int | None, ...] | None:
    """The shape that the file declares, with what is known of names in it. None: not even how many
    axes there are."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0
                 else symbols.get(dim.dim_param) if dim.dim_param else None
                 for dim in value.type.tensor_type.shape.dim)


def resolve_symbols(inputs: list[ValueInfoProto], given: GivenInputs) -> dict[str, int]:
    """What names of sizes stand for, by the shapes and values that are given."""
    symbols: dict[str, int] = {}
    for each in inputs:
        sizes, shape = sizes_of(each, {}), given.shapes.get(each.name)
        if shape is not None and sizes is not None:
            check_shape(each.name, shape, sizes)
        if shape is None and each.name in given.values:
            shape = value_array(each.name, given.values[each.name], sizes, _dtype(each)).shape
        for extent, dim in zip(shape or (), each.type.tensor_type.shape.dim, strict=False):
            if dim.dim_param and symbols.setdefault(dim.dim_param, extent) != extent:
                raise GraphError(f"the size {show_name(dim.dim_param)} is {symbols[dim.dim_param]} "
                                 f"and {extent} in the shapes that are given")
    return symbols
