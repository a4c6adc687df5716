"""A graph as an ONNX model: a rule for each operation, and what rules write with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...base.checked_values import list_names, show_name
from ...base.errors import MicrotronError
from ...compiler.graph.graph import Graph, Node
from ...compiler.graph.operation import Operation
from ...compiler.graph.types import Array, TensorType

if TYPE_CHECKING:
    import onnx

OPSET = 21                      # the first in which QuantizeLinear knows 16 and 4 bits
IR_VERSION = 10
PRODUCER = "microtron"
RULES: dict[type[Operation], Callable[[Any, str, Any], None]] = {}
Rule = TypeVar("Rule", bound=Callable[..., None])


def rule(*operations: type[Operation]) -> Callable[[Rule], Rule]:
    """A function that writes nodes of some operations: (writer, result, operation)."""
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, function))
        return function
    return register


@dataclass
class Writer:
    """An ONNX model while it is being written. Tensors have their names in the graph."""

    graph: Graph
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    _names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = set(self.graph.types)

    def type_of(self, name: str) -> TensorType:
        return self.graph.type_of(name)

    def node(self, kind: str, operands: list[str], result: str | None = None,
             **attributes: Any) -> str:
        """An ONNX node with one result, which gets a name unless it has one."""
        return self.node_of_several(kind, operands, [result or self.fresh(f"{kind}")],
                                    **attributes)[0]

    def node_of_several(self, kind: str, operands: list[str], results: list[str],
                        **attributes: Any) -> list[str]:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, operands, results, name=results[-1],
                                           **attributes))
        return results

    def constant(self, values: Any, dtype: str = "", name: str = "constant") -> str:
        from onnx import numpy_helper

        array = np.asarray(values, dtype or None)
        name = self.fresh(name)
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array).reshape(
            array.shape), name)
        return name

    def integers(self, values: Any) -> str:
        return self.constant(values, "int64")

    def scalar_like(self, value: float, tensor: str) -> str:
        return self.constant(value, self.type_of(tensor).dtype)

    def fresh(self, name: str) -> str:
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}.{number}"
        self._names.add(found)
        return found

    def tensor(self, name: str, array: Array) -> None:
        """A constant of the graph under its own name."""
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array).reshape(
                array.shape), name)


def write_onnx(graph: Graph, notes: dict[str, str]) -> onnx.ModelProto:
    """The graph as a model that is checked. Notes go into its metadata."""
    import onnx
    from onnx import helper

    _import_rules()
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


def _import_rules() -> None:
    """Rules register when they are imported, and need this module before."""
    from . import float_rules, move_rules, window_rules

    assert all((float_rules, move_rules, window_rules))


def _write_node(writer: Writer, name: str, node: Node) -> None:
    RULES[type(node.operation)](writer, name, node.operation)


def _value(name: str, type_: TensorType) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype)), list(type_.shape))
