"""Operators on variables, and on sparse tensors."""

from __future__ import annotations

from typing import Any

import tflite

from ....graph.builder import Builder
from ....graph.evaluate_graph import evaluate
from ....graph.graph import Constant
from ....graph.operations.data_movement.indexing import Expand, Tile
from ....graph.operations.data_movement.shape import Pad
from ....graph.operations.pointwise.quantize import Dequantize, Quantize, Reinterpret
from ....graph.types import GraphError
from ..operator_node import FOLDED, HANDLE, Node, Reading, reads
from ..tflite_file import CALL_ONCE, DENSIFY, Model, damage_is_an_error
from ..variables import Key, Variables, name_of

MOST_INITIAL = 1 << 26          # bytes of everything that is computed for initial values
COMPUTED = (*FOLDED, Expand, Tile, Pad, Quantize, Dequantize, Reinterpret)
VAR_HANDLE = "VAR_HANDLE"


@reads(CALL_ONCE, options="CallOnceOptions", inputs=0, outputs=0)
def call_once(node: Node) -> None:
    """Compute what variables hold before the first inference."""
    variables = node.reading.variables
    number = int(node.option("InitSubgraphIndex"))
    body = node.reading.model.initializers.get(number)
    if body is None:
        raise GraphError("a subgraph that is called once must not call another")
    if variables.current:
        raise GraphError("variables are read or assigned before the subgraph is called that says "
                         "what they hold first")
    if body.inputs:
        raise GraphError(f"subgraph {number} is called once without operands, but has "
                         f"{len(body.inputs)} inputs")
    inner = Reading(body, Builder("initial values"), variables=Variables(dict(variables.initial)))
    find_handles(inner)
    inner.read_operators()
    variables.initial |= _final_values(inner)


def _final_values(reading: Reading) -> dict[Key, Constant]:
    """What the variables of a subgraph hold after it, in numbers."""
    current, builder = reading.variables.current, reading.builder
    for name, each in builder.nodes.items():
        if not isinstance(each.operation, COMPUTED):
            raise GraphError(f"{each.origin or name}: {each.operation.title()} computes what a "
                             f"variable holds first, which is not supported")
    if sum(each.type.bytes for each in builder.nodes.values()) > MOST_INITIAL:
        raise GraphError(f"what variables hold first takes more than {MOST_INITIAL} bytes")
    if not current:
        return {}
    values = evaluate(builder.graph(tuple(dict.fromkeys(current.values()))), {})
    return {key: Constant(builder.type_of(name), values[name]) for key, name in current.items()}


def find_handles(reading: Reading) -> None:
    """Learn which tensors are handles of which variables, and what a subgraph assigns."""
    variables, assigned = reading.variables, set()
    for operator in reading.model.operators:
        if operator.name == VAR_HANDLE and len(operator.outputs) == 1:
            variables.handles[operator.outputs[0]] = _key(operator.options_kind, operator.options)
    for operator in reading.model.operators:
        if operator.name == "ASSIGN_VARIABLE" and operator.inputs:
            assigned.add(variables.handles.get(operator.inputs[0], (b"", b"")))
    variables.assigned = frozenset(assigned)


def _key(kind: str, given: Any) -> Key:
    if given is None or kind != "VarHandleOptions":
        return b"", b""
    with damage_is_an_error():
        options = tflite.VarHandleOptions()
        options.Init(given.Bytes, given.Pos)
        return bytes(options.Container() or b""), bytes(options.SharedName() or b"")


@reads(VAR_HANDLE, options="VarHandleOptions", inputs=0)
def handle(node: Node) -> None:
    """Nothing to compute: `find_handles` has seen it."""
    if node.declared_result().dtype != HANDLE:
        found = node.declared_result()
        raise GraphError(f"the handle {found.title} is {found.dtype}, but must be a {HANDLE}")


@reads("READ_VARIABLE", options="ReadVariableOptions")
def read(node: Node) -> None:
    variables, builder = node.reading.variables, node.reading.builder
    key = variables.key_of(node.operator.inputs[0], node.tensor(0).title)
    found = variables.read(key, builder, node.reading.fresh(name_of(key)))
    if builder.type_of(found).dtype != node.declared_result().dtype:
        raise GraphError(f"it reads {builder.type_of(found).dtype} as "
                         f"{node.declared_result().dtype}")
    if builder.type_of(found).quantization == node.declared_result().quantization:
        node.give_existing(found)
    else:
        node.add(Reinterpret(x=found))


@reads("ASSIGN_VARIABLE", options="AssignVariableOptions", inputs=2, outputs=0)
def assign(node: Node) -> None:
    variables = node.reading.variables
    key = variables.key_of(node.operator.inputs[0], node.tensor(0).title)
    variables.assign(key, node.input(1), node.reading.builder,
                     node.reading.fresh(f"{name_of(key)}.assigned"))


@reads(DENSIFY, options="DensifyOptions")
def densify(node: Node) -> None:
    """What is left when constants are read, which are dense by then."""
    raise GraphError(f"{node.tensor(0).title} is computed by the network, but must be a sparse "
                     f"constant")


def subgraphs_of(model: Model) -> list[Model]:
    """The network and what it calls once."""
    return [model, *model.initializers.values()]
