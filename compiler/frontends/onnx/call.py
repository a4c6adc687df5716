"""One node of a model while it is read: its operands, attributes and results, checked as they are
asked for."""

from __future__ import annotations

from math import isfinite

import numpy as np
from onnx import AttributeProto, NodeProto

from ....base.checked_values import quote
from ....base.classes.dataclass import dataclass
from ...graph.operation import Operation
from ...graph.operations.data_movement.shape import Reshape
from ...graph.operations.pointwise.unary import Cast
from ...graph.types import Array, GraphError, Quantization, Shape, TensorType
from .onnx_file import array_of
from .reader import LARGEST_FOLDED, Reader


@dataclass
class Call:
    """A node. Operands and results have the numbers that ONNX gives them."""

    node: NodeProto
    reader: Reader
    opset: int
    depth: int = 0          # in how many functions and bodies it is

    def __post_init__(self) -> None:
        self.attributes = {each.name: each for each in self.node.attribute}
        self.asked = 0          # operands that the operator may have, as far as it was asked

    # Operands.

    def has(self, number: int) -> bool:
        self.asked = max(self.asked, number + 1)
        return number < len(self.node.input) and self.node.input[number] != ""

    def __len__(self) -> int:
        self.asked = len(self.node.input)
        return len(self.node.input)

    def operand_name(self, number: int) -> str:
        """The name that the model gives an operand, which must be there."""
        if not self.has(number):
            raise GraphError(f"operand {number} is missing")
        name = str(self.node.input[number])
        if name in self.reader.halves and self.node.op_type != "DequantizeLinear":
            raise GraphError(f"{quote(name)} has 4 bits, but only DequantizeLinear reads such "
                             f"constants")
        return name

    def tensor(self, number: int) -> str:
        """An operand; integers keep their scales, as for an operator that moves numbers."""
        return self.reader.tensor(self.operand_name(number))

    def plain_operand(self, number: int) -> str:
        """An operand as numbers that stand for themselves, as ONNX has it in arithmetic."""
        return self.reader.reinterpret(self.tensor(number), None)

    def type(self, number: int) -> TensorType:
        return self.type_of(self.tensor(number))

    def type_of(self, tensor: str) -> TensorType:
        return self.reader.builder.type_of(tensor)

    def known_values(self, number: int) -> Array | None:
        """The numbers of an operand, if they are known."""
        return self.reader.known_values(self.operand_name(number))

    def array(self, number: int, what: str) -> Array:
        """The numbers of an operand that must be known."""
        found = self.known_values(number)
        if found is None:
            raise self.reader.not_constant(what, self.tensor(number))
        return found

    def integers(self, number: int, what: str) -> tuple[int, ...]:
        """The integers of an operand that must be a constant list of them, or a single one."""
        found = self.array(number, what)
        if found.dtype.kind != "i" or found.ndim > 1:
            raise GraphError(f"{what} is {found.dtype} of shape {found.shape}, but must be a list "
                             f"of integers")
        return tuple(found.ravel().tolist())

    def number(self, number: int, what: str) -> float:
        """The one number of an operand that must be constant."""
        found = self.array(number, what)
        if found.size != 1:
            raise GraphError(f"{what} has shape {found.shape}, but must be a single number")
        value: float = found.ravel()[0].item()
        return value

    # Attributes.

    def integer(self, name: str, default: int) -> int:
        return int(self.attributes[name].i) if self._has(name, AttributeProto.INT) else default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.integer(name, int(default))
        if value not in (0, 1):
            raise GraphError(f"{name} is {value}, but must be 0 or 1")
        return bool(value)

    def real(self, name: str, default: float) -> float:
        value = float(self.attributes[name].f) if self._has(name, AttributeProto.FLOAT) else default
        if not isfinite(value):
            raise GraphError(f"{name} is {value}, but must be a number")
        return value

    def text(self, name: str, default: str, choices: str = "") -> str:
        """Text, which must be one of some words."""
        if not self._has(name, AttributeProto.STRING):
            return default
        value = str(self.attributes[name].s.decode(errors="replace"))
        if choices and value not in choices.split():
            raise GraphError(f"{name} is {quote(value)}, but must be one of "
                             f"{', '.join(choices.split())}")
        return value

    def list(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, if it is there."""
        return tuple(self.attributes[name].ints) if self._has(name, AttributeProto.INTS) else None

    def reals(self, name: str) -> tuple[float, ...] | None:
        return tuple(self.attributes[name].floats) if self._has(
            name, AttributeProto.FLOATS) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, empty if it is not there."""
        if not self._has(name, AttributeProto.STRINGS):
            return ()
        return tuple(each.decode(errors="replace") for each in self.attributes[name].strings)

    def tensor_attribute(self, name: str) -> Array | None:
        return array_of(self.attributes[name].t) if self._has(name, AttributeProto.TENSOR) else None

    def _has(self, name: str, kind: AttributeProto.AttributeType) -> bool:
        if name not in self.attributes:
            return False
        if self.attributes[name].type != kind:
            raise GraphError(f"{name} must be {AttributeProto.AttributeType.Name(kind)}")
        return True

    # Results.

    @property
    def result(self) -> str:
        """The name of the first result."""
        return next((each for each in self.node.output if each), "unnamed")

    @property
    def origin(self) -> str:
        return self.node.name or self.result

    def one_result(self) -> None:
        """Refuse a node whose second result is wanted."""
        if any(self.node.output[1:]):
            raise GraphError(f"the result {quote(next(filter(None, self.node.output[1:])))} is not "
                             f"supported, only the first is")

    def add(self, operation: Operation, *, dtype: str | None = None,
            quantization: Quantization | None = None) -> str:
        """A step on the way to a result."""
        return self.reader.add(f"{self.result}.{type(operation).__name__.lower()}", operation,
                               dtype=dtype, quantization=quantization, origin=self.origin)

    def give(self, operation: Operation, number: int = 0, *, dtype: str | None = None,
             quantization: Quantization | None = None) -> None:
        """A result."""
        name = self.node.output[number] if number < len(self.node.output) else ""
        found = self.reader.add(name or f"{self.result}.unused", operation, dtype=dtype,
                                quantization=quantization, origin=self.origin)
        if name:
            self.reader.define(name, found)

    def give_existing(self, tensor: str, number: int = 0) -> None:
        """A result that is a tensor which is there already."""
        if number < len(self.node.output) and self.node.output[number]:
            self.reader.define(self.node.output[number], tensor)

    def constant(self, array: Array, quantization: Quantization | None = None) -> str:
        """A constant on the way to a result."""
        return self.reader.builder.constant(f"{self.result}.constant", array, quantization)

    # What several operators need.

    def give_moved(self, operation: Operation, of: str, number: int = 0) -> None:
        """A result with the scales of one operand: that of an operation that moves numbers."""
        self.give(operation, number, quantization=self.type_of(of).quantization)

    def move(self, operation: Operation, of: str) -> str:
        """A step that moves numbers."""
        return self.add(operation, quantization=self.type_of(of).quantization)

    def reshape(self, tensor: str, shape: Shape) -> str:
        """A tensor in another shape."""
        if self.type_of(tensor).shape == shape:
            return tensor
        return self.move(Reshape(x=tensor, shape=shape), tensor)

    def give_reshaped(self, tensor: str, shape: Shape, number: int = 0) -> None:
        """A result that is a tensor in another shape."""
        self.give_moved(Reshape(x=tensor, shape=shape), tensor, number)

    def cast(self, tensor: str, dtype: str) -> str:
        """A tensor as numbers of another type."""
        if self.type_of(tensor).dtype == dtype:
            return tensor
        return self.add(Cast(x=tensor, dtype=dtype))

    def scalar(self, value: float, dtype: str) -> str:
        """A single number as a constant."""
        return self.constant(np.asarray(value, dtype))

    def numbers(self, count: int) -> str:
        """0, 1, 2 and so on, as a constant."""
        if count > LARGEST_FOLDED:
            raise GraphError(f"an axis has {count} indices, more than {LARGEST_FOLDED}")
        return self.constant(np.arange(count, dtype=np.int64))
