"""From the bytes of an ONNX file to a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, ValueInfoProto
from onnx.defs import onnx_opset_version

from ....isa.values import integer, listed, named, shown
from ...graph.graph import Builder, Graph
from ...graph.operations.shape import Reshape
from ...graph.types import GraphError, Shape, TensorType
from . import (  # noqa: F401  (makes operators known)
    arithmetic,
    bits,
    constants,
    control,
    einsum,
    images,
    matrices,
    microsoft,
    moves,
    norms,
    picks,
    pools,
    quantized,
    recurrence,
    reductions,
    resizes,
    windows,
)
from .file import DTYPES, array_of, dtype_of, parsed, type_name
from .nodes import problems_of, read_nodes
from .reader import Reader, placed
from .table import DOMAINS, supported

__all__ = ["read_onnx", "supported"]


def read_onnx(data: bytes, name: str = "", shapes: Mapping[str, Shape] | None = None) -> Graph:
    """The network in an ONNX file. `shapes` are those of inputs whose sizes the file leaves open;
    `name` is what messages call the file."""
    try:
        return _read(parsed(data), name, shapes or {})
    except GraphError as error:
        text = f"{named(name)}: {error}" if name else str(error)
        raise placed(error, "".join(each if each.isprintable() else "?" for each in text)) from None


def _read(model: ModelProto, name: str, shapes: Mapping[str, Shape]) -> Graph:
    opset = next((int(each.version) for each in model.opset_import if each.domain in DOMAINS), 0)
    graph, newest = model.graph, onnx_opset_version()
    if opset > newest:
        raise GraphError(f"this is opset {opset}, but the newest that is known is {newest}")
    reader = Reader(Builder(name), {(each.domain, each.name): each for each in model.functions})
    problems = [*_bad_constants(graph), *problems_of(reader, graph.node, opset)]
    if problems:
        raise GraphError("; ".join(problems))
    for tensor in graph.initializer:
        if tensor.name in reader.arrays:
            raise GraphError(f"there are two tensors {shown(tensor.name)}")
        reader.arrays[tensor.name] = array_of(tensor)
    for input_ in _inputs(graph, shapes):
        reader.names[input_[0]] = reader.builder.input(*input_)
    read_nodes(reader, graph.node, opset)
    return reader.builder.graph(tuple(_output(reader, each.name) for each in graph.output))


def _bad_constants(graph: GraphProto) -> Iterator[str]:
    """What of a model's constants cannot be read."""
    found: dict[str, list[str]] = {}
    for tensor in graph.initializer:
        if tensor.data_type not in DTYPES:
            found.setdefault(f"type {type_name(tensor.data_type)} is unknown, known are "
                             f"{', '.join(map(type_name, DTYPES))}", []).append(shown(tensor.name))
    yield from (f"{problem} ({listed(places)})" for problem, places in found.items())
    if graph.sparse_initializer:
        yield "sparse tensors are not supported"


def _inputs(graph: GraphProto, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, TensorType]]:
    """Names and types of inputs, with open sizes filled in."""
    known = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in known]
    for name in shapes:
        if name not in {each.name for each in inputs}:
            raise GraphError(f"a shape is given for {shown(name)}, but inputs are "
                             f"{listed([each.name for each in inputs])}")
    symbols: dict[str, int] = {}
    for each in inputs:
        if each.name in shapes:
            symbols |= _meant(each, shapes[each.name])
    for each in inputs:
        if not each.type.HasField("tensor_type"):
            raise GraphError(f"the input {shown(each.name)} is no tensor")
        shape = shapes.get(each.name)
        dtype = dtype_of(each.type.tensor_type.elem_type)
        yield each.name, TensorType(_fixed(each, symbols) if shape is None else tuple(shape), dtype)


def _meant(value: ValueInfoProto, shape: Shape) -> dict[str, int]:
    """What the letters in an input's shape stand for, if that is to be a given one."""
    dims = value.type.tensor_type.shape.dim
    if value.type.tensor_type.HasField("shape") and len(dims) != len(shape):
        raise GraphError(f"the shape {shown(tuple(shape))} for {shown(value.name)} has "
                         f"{len(shape)} axes, but must have {len(dims)}")
    found = {}
    for given, dim in zip(shape, dims, strict=False):
        size = integer(given)
        if size is None or size < 0 or (dim.HasField("dim_value") and dim.dim_value != size):
            fixed = ",".join(str(each.dim_value) if each.HasField("dim_value") else "?"
                             for each in dims)
            raise GraphError(f"the shape {shown(tuple(shape))} for {shown(value.name)} does not "
                             f"fit {fixed}")
        found[dim.dim_param] = size
    found.pop("", None)
    return found


def _fixed(value: ValueInfoProto, symbols: Mapping[str, int]) -> Shape:
    """The shape of an input in the file, which must leave nothing open."""
    dims = value.type.tensor_type.shape.dim
    sizes = [dim.dim_value if dim.HasField("dim_value") else symbols.get(dim.dim_param, -1)
             for dim in dims]
    if -1 in sizes or not value.type.tensor_type.HasField("shape"):
        words = ",".join(str(1 if size == -1 else size) for size in sizes) or "1,3,224,224"
        raise GraphError(f"the input {shown(value.name)} has no fixed shape; give one, as in "
                         f"--shape {value.name}={words}")
    return tuple(sizes)


def _output(reader: Reader, name: str) -> str:
    """An output under its own name, also if it is a tensor that has another one."""
    tensor = reader.tensor(name)
    if tensor == name:
        return name
    type_ = reader.builder.type_of(tensor)
    return reader.builder.add(name, Reshape(x=tensor, shape=type_.shape),
                              quantization=type_.quantization)
