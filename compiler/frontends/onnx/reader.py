"""A graph while it is read: tensors by the names that the model gives them, and arithmetic on what
is known, which is done at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

from onnx import FunctionProto

from ....base.checked_values import quote, show_name
from ....base.classes.dataclass import dataclass
from ...graph.builder import Builder
from ...graph.evaluate_graph import compute_node
from ...graph.operation import Operation, Value
from ...graph.operations.layers.matmul import MatMul
from ...graph.operations.layers.window import Conv, Pool, TransposedConv
from ...graph.operations.pointwise.quantize import Dequantize, Lookup, Quantize, Reinterpret
from ...graph.types import Array, GraphError, Quantization, TensorType

# Numbers that may be computed while a model is read: enough for every shape, few for a machine.
LARGEST_FOLDED = 1 << 20
FOLDED_TOGETHER = 1 << 24
MOST_EXPANDED = 1 << 16     # nodes of functions and of loops, each as often as it is read
# What stays in the graph although its operands are known: quantized constants, which passes want
# to see, and real work.
NOT_FOLDED = (Quantize, Dequantize, Reinterpret, Lookup, Conv, TransposedConv, Pool, MatMul)


class NotConstantError(GraphError):
    """A setting of an operation is computed from inputs of the model, which are named."""

    def __init__(self, text: str, inputs: tuple[str, ...]) -> None:
        super().__init__(text)
        self.inputs = inputs


def locate_error(error: GraphError, text: str) -> GraphError:
    """The same error with a text that says where."""
    if isinstance(error, NotConstantError):
        return NotConstantError(text, error.inputs)
    return GraphError(text)


@dataclass
class Reader:
    """The tensors so far."""

    builder: Builder
    functions: Mapping[tuple[str, str], FunctionProto] = field(default_factory=dict)    # its own
    arrays: dict[str, Array] = field(default_factory=dict)      # initializers, by name
    halves: set[str] = field(default_factory=set)               # those of them with 4 bits
    names: dict[str, str] = field(default_factory=dict)         # in the graph, of the model's
    as_quantized: dict[tuple[str, Quantization], str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)                 # tensors that some node reads
    budget: int = FOLDED_TOGETHER
    expanded: int = 0                                           # nodes of functions and loops
    bodies: int = 0                                             # that were read
    inside: str = ""                                            # the node in a body, if any

    def tensor(self, name: str) -> str:
        """The name in the graph of a tensor of the model."""
        if name not in self.names:
            if name not in self.arrays:
                raise GraphError(f"{quote(name)} is read before it is computed; nodes must be in "
                                 f"order, without a cycle")
            self.names[name] = self.builder.constant(name, self.arrays[name])
        return self.names[name]

    def count_expanded(self) -> None:
        """Refuse a model whose functions and loops stand for too many nodes: a few bytes may stand
        for any number."""
        self.expanded += 1
        if self.expanded > MOST_EXPANDED:
            raise GraphError(f"functions and loops stand for more than {MOST_EXPANDED} nodes")

    def prefix(self, name: str) -> str:
        """What names of tensors in a body begin with, for the next body of a node of this name."""
        self.bodies += 1
        return f"{name}@{self.bodies}."

    def not_constant(self, what: str, tensor: str) -> NotConstantError:
        """The error that a tensor of the graph, which must be known, is computed."""
        inputs = self.sources(tensor)
        small = inputs and all(self.builder.inputs[each].size == 1 for each in inputs)
        hint = f"; {' '.join(f'--value {each}=NUMBER' for each in inputs)} makes it so"
        return NotConstantError(f"{what} is {quote(tensor)}, which is computed, but must be "
                                f"constant{hint if small else ''}", inputs)

    def sources(self, tensor: str) -> tuple[str, ...]:
        """The inputs of the graph that a tensor is computed from."""
        waiting, seen = [tensor], {tensor}
        while waiting:
            node = self.builder.nodes.get(waiting.pop())
            for name in node.operation.operands() if node is not None else ():
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return tuple(name for name in self.builder.inputs if name in seen)

    def known_values(self, name: str) -> Array | None:
        """The numbers of a tensor of the model, if they are known."""
        if name in self.arrays:
            return self.arrays[name]
        return self.builder.array(self.tensor(name))

    def dtype(self, name: str) -> str:
        """The type of the numbers of a tensor of the model."""
        if name in self.arrays:
            return str(self.arrays[name].dtype)
        return self.builder.type_of(self.tensor(name)).dtype

    def quantize(self, name: str, quantization: Quantization) -> str:
        """A tensor of the model whose integers stand for other numbers. What reads an integer says
        so in ONNX, not what computes it."""
        if name in self.arrays:
            key = (name, quantization)
            if key not in self.as_quantized:
                self.as_quantized[key] = self.builder.constant(name, self.arrays[name],
                                                               quantization)
            return self.as_quantized[key]
        return self.reinterpret(self.tensor(name), quantization)

    def reinterpret(self, tensor: str, quantization: Quantization | None) -> str:
        """A tensor of the graph with other scales, or none."""
        type_ = self.builder.type_of(tensor)
        if type_.quantization == quantization:
            return tensor
        if tensor in self.builder.inputs and tensor not in self.read:
            self.builder.inputs[tensor] = TensorType(type_.shape, type_.dtype, quantization)
            return tensor
        if tensor in self.builder.constants:
            return self.builder.constant(tensor, self.builder.constants[tensor].array, quantization)
        return self.add(f"{tensor}.stored", Reinterpret(x=tensor), quantization=quantization)

    def define(self, name: str, tensor: str) -> None:
        """Say which tensor of the graph the model means by a name."""
        if name in self.names or name in self.arrays:
            raise GraphError(f"{quote(name)} is computed twice")
        self.names[name] = tensor

    def add(self, name: str, operation: Operation, *, dtype: str | None = None,
            quantization: Quantization | None = None, origin: str = "") -> str:
        """Add a node, or a constant if everything is known; returns its name, which differs from
        the given one if that is taken."""
        name = self.builder.fresh(name)
        place = origin or name
        try:
            self.builder.add(name, operation, dtype=dtype, quantization=quantization, origin=origin)
        except GraphError as error:
            prefix = f"{show_name(place)}: {operation.title()}: "
            raise GraphError(str(error).removeprefix(prefix)) from None
        self.read.update(operation.operands())
        return self._fold(name)

    def _fold(self, name: str) -> str:
        """A node as a constant, if all its operands are and it is small."""
        node = self.builder.nodes[name]
        constants = self.builder.constants
        operands = node.operation.operands()
        size = sum(constants[each].type.size for each in operands if each in constants)
        size += prod(node.type.shape)
        if isinstance(node.operation, NOT_FOLDED) or size > min(LARGEST_FOLDED, self.budget) or (
                any(each not in constants or constants[each].type.is_quantized
                    for each in operands)):
            return name
        self.budget -= size
        array = compute_node(node, [Value(constants[each].type, constants[each].array)
                                    for each in operands])
        del self.builder.nodes[name]
        return self.builder.constant(name, array)
