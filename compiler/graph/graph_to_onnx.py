"""A graph as an ONNX file to look at, in Netron or any other viewer.

Our operations are nodes of the domain `microtron`, so nothing can run the file; it shows what the
compiler sees. Settings are attributes: whole numbers as such, real numbers as text with all of
their digits, since ONNX keeps 32 bits of them. Scales and zero points are quantization
annotations, and a node's name in the model is its doc string.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from ...base.checked_values import printable
from .graph import Graph, Node
from .operation import Operation, operand_fields
from .records import to_plain_data
from .types import Array, Quantization, TensorType

if TYPE_CHECKING:
    import onnx

DOMAIN = "microtron"
OPSET = 21
IR_VERSION = 10
LARGE = 1 << 10             # bytes of a constant from which on it is stored outside


class ConstantStore:
    """The numbers of large constants, which graphs of one dump share in a single file."""

    def __init__(self, name: str) -> None:
        self.name = name                    # of the file, beside those of the graphs
        self.pieces: list[bytes] = []
        self._size = 0
        self._places: dict[bytes, int] = {}

    def place(self, data: bytes) -> int:
        """The offset of some bytes, which are stored once."""
        if data not in self._places:
            self._places[data] = self._size
            self.pieces.append(data)
            self._size += len(data)
        return self._places[data]


def graph_to_onnx(graph: Graph, store: ConstantStore) -> onnx.ModelProto:
    """The graph as a model of ONNX whose large constants are in the store."""
    from onnx import helper

    names = _unique_names(graph)
    nodes = [_node(names, name, node) for name, node in graph.nodes.items()]
    constants = [_constant(names[name], each.array, store)
                 for name, each in graph.constants.items()]
    found = helper.make_graph(
        nodes, printable(graph.name) or "graph",
        [_value(names[name], each, _state_note(graph, name))
         for name, each in graph.inputs.items()],
        [_value(names[name], graph.type_of(name)) for name in graph.outputs],
        value_info=[_value(names[name], node.type) for name, node in graph.nodes.items()
                    if name not in graph.outputs])
    _annotate(found, graph, names, constants)
    found.initializer.extend(constants)
    return helper.make_model(
        found, producer_name=DOMAIN, ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)])


def _unique_names(graph: Graph) -> dict[str, str]:
    """What each tensor is called: in ONNX an empty name is no tensor."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in graph.types:
        found[name] = _fresh(printable(name) or "unnamed", taken)
    return found


def _fresh(name: str, taken: set[str]) -> str:
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name}.{number + 1}"
    taken.add(found)
    return found


def _node(names: dict[str, str], name: str, node: Node) -> onnx.NodeProto:
    from onnx import helper

    operation = node.operation
    found = helper.make_node(type(operation).__name__, _operands(names, operation), [names[name]],
                             names[name], printable(node.origin) or None, DOMAIN)
    found.attribute.extend(helper.make_attribute(name, each)
                           for name, each in _attributes(operation).items())
    return found


def _operands(names: dict[str, str], operation: Operation) -> list[str]:
    """In the order of fields; one that is absent has an empty name, so that others keep their
    places."""
    found: list[str] = []
    for each in operand_fields(type(operation)):
        value = getattr(operation, each)
        if isinstance(value, tuple):
            found += [names[name] for name in value]
        else:
            found.append("" if value is None else names[value])
    while found and not found[-1]:
        found.pop()
    return found


def _attributes(operation: Operation) -> dict[str, object]:
    """All settings but those that are None."""
    plain = to_plain_data(operation)
    given = [each.name for each in fields(operation) if not each.metadata.get("operand")]
    return {name: _attribute(plain[name]) for name in given if plain[name] is not None}


def _attribute(value: object) -> object:
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
        return value
    return value if isinstance(value, str) else json.dumps(value)


def _constant(name: str, array: Array, store: ConstantStore) -> onnx.TensorProto:
    import onnx
    from onnx import helper, numpy_helper

    whole = np.ascontiguousarray(array).reshape(array.shape)
    if array.nbytes < LARGE:
        return numpy_helper.from_array(whole, name)
    data = whole.astype(whole.dtype.newbyteorder("<"), copy=False).tobytes()
    found = onnx.TensorProto(name=name, dims=array.shape,
                             data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
                             data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", store.name), ("offset", store.place(data)),
                       ("length", len(data))):
        found.external_data.add(key=key, value=str(value))
    return found


def _value(name: str, type_: TensorType, note: str = "") -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype)), list(type_.shape), note)


def _state_note(graph: Graph, name: str) -> str:
    if name not in graph.states:
        return ""
    return printable(f"state: {graph.states[name].result} of the inference before")


def _annotate(found: onnx.GraphProto, graph: Graph, names: dict[str, str],
              constants: list[onnx.TensorProto]) -> None:
    """Say which real numbers integers stand for. Tensors that are quantized alike share the
    constants that say so."""
    from onnx import numpy_helper

    taken = set(names.values())
    known: dict[tuple[object, ...], tuple[str, str]] = {}
    for name, type_ in graph.types.items():
        quantization = type_.quantization
        if quantization is None:
            continue
        key = (quantization.scales, quantization.zero_points)
        if key not in known:
            known[key] = (_fresh("scale", taken), _fresh("zero_point", taken))
            constants += [numpy_helper.from_array(array, each) for each, array in zip(
                known[key], _parameters(quantization), strict=True)]
        annotation = found.quantization_annotation.add(tensor_name=names[name])
        for label, each in zip(("SCALE_TENSOR", "ZERO_POINT_TENSOR"), known[key], strict=True):
            annotation.quant_parameter_tensor_names.add(key=label, value=each)
        if quantization.axis is not None:
            annotation.quant_parameter_tensor_names.add(key="axis", value=str(quantization.axis))


def _parameters(quantization: Quantization) -> tuple[Array, Array]:
    scales = np.array(quantization.scales, np.float64)
    zeros = np.array(quantization.zero_points, np.int64)
    return (scales[0], zeros[0]) if quantization.axis is None else (scales, zeros)
