"""What rules write an ONNX model with, and the table of rules, one for each operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ...compiler.graph.graph import Graph
from ...compiler.graph.operation import Operation
from ...compiler.graph.types import Array, TensorType

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

OPSET = 21                      # the first in which QuantizeLinear knows 16 and 4 bits
IR_VERSION = 10
PRODUCER = "microtron"
Attribute: TypeAlias = Any          # of a node of ONNX: a number, a text, a list, a tensor
Attributes: TypeAlias = dict[str, Attribute]
RULES: dict[type[Operation], Callable[..., None]] = {}
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
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    _names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = set(self.graph.types)

    def type_of(self, name: str) -> TensorType:
        return self.graph.type_of(name)

    def node(self, kind: str, operands: list[str], result: str | None = None,
             **attributes: Attribute) -> str:
        """An ONNX node with one result, which gets a name unless it has one."""
        return self.node_of_several(kind, operands, [result or self.fresh(f"{kind}")],
                                    **attributes)[0]

    def node_of_several(self, kind: str, operands: list[str], results: list[str],
                        **attributes: Attribute) -> list[str]:
        from onnx import defs, helper

        declared = defs.get_schema(kind, OPSET).attributes
        real = {name: float(value) for name, value in attributes.items()
                if declared[name].type == defs.OpSchema.AttrType.FLOAT}     # 1 would be an integer
        self.nodes.append(helper.make_node(kind, operands, results, name=results[-1],
                                           **{**attributes, **real}))
        return results

    def constant(self, values: object, dtype: str = "", name: str = "constant") -> str:
        from onnx import numpy_helper

        array = np.asarray(values, dtype or None)
        name = self.fresh(name)
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array).reshape(
            array.shape), name)
        return name

    def integers(self, values: object) -> str:
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
