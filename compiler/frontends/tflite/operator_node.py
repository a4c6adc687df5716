"""Operators of a file on their way into a graph: what the functions that translate them use.

    @reads("RELU")
    def relu(node: Node) -> None:
        node.add(Clamp(x=node.input(0), low=0))
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import tflite

from ....base.classes.dataclass import dataclass
from ...graph.builder import Builder
from ...graph.operation import Operation, Value
from ...graph.operations.data_movement.indexing import Gather
from ...graph.operations.data_movement.shape import Concat, Reshape, Slice, Transpose
from ...graph.operations.layers.reduction import Reduce
from ...graph.operations.pointwise.binary import Binary
from ...graph.operations.pointwise.unary import Cast, Unary
from ...graph.types import Array, GraphError, Quantization, Shape, TensorType
from .tflite_file import DTYPES, NO_TENSOR, Model, Operator, Tensor, damage_is_an_error
from .variables import Variables
from .verifier import Table

HANDLE = "RESOURCE"             # the type of a variable's handle
NOT_IN_GRAPHS = ("float16", "int4")     # only constants may be of these types
MOST_FOLDED = 1 << 12           # elements of a result that is computed while reading
# What computes shapes; windows and borders could be large whatever their operands.
FOLDED = (Reshape, Transpose, Concat, Slice, Gather, Binary, Unary, Cast, Reduce)
MOST_COPIES = 16                # of the file, in constants that are stored in another order
COPIES_AT_LEAST = 1 << 24       # bytes
# A table without fields, whose accessors give defaults: an operator may come without options.
EMPTY_TABLE = struct.pack("<HHi", 4, 4, 4)


@dataclass(frozen=True)
class Rule:
    """How operators of one kind are read."""

    function: Callable[[Node], None]
    options: str                # the schema's class of their settings
    inputs: tuple[int, int]     # at least and at most
    outputs: int | None         # None: any number


RULES: dict[str, Rule] = {}


def reads(*names: str, options: str = "", inputs: int | tuple[int, int] = 1,
          outputs: int | None = 1) -> Callable[[Callable[[Node], None]], Callable[[Node], None]]:
    """Declare that a function reads these operators."""
    def declare(function: Callable[[Node], None]) -> Callable[[Node], None]:
        counts = (inputs, inputs) if isinstance(inputs, int) else inputs
        for name in names:
            assert name not in RULES, f"two functions read {name}"
            RULES[name] = Rule(function, options, counts, outputs)
        return function
    return declare


@dataclass
class Reading:
    """A model that is becoming a graph."""

    model: Model
    builder: Builder
    names: dict[int, str] = field(default_factory=dict)     # tensors of the file → of the graph
    copied: int = 0                                         # bytes of constants stored anew
    used: dict[str, int] = field(default_factory=dict)      # names that were made, and how often
    reserved: frozenset[str] = frozenset()                  # names of what the file computes
    variables: Variables = field(default_factory=Variables)

    def __post_init__(self) -> None:
        self.reserved = frozenset(each.name for each in self.model.tensors
                                  if each.data is None and each.dtype != HANDLE)

    def read_operators(self) -> None:
        """All operators of the subgraph, in order."""
        for operator in self.model.operators:
            node = Node(self, operator, RULES[operator.name])
            try:
                node.check_counts()
                node.rule.function(node)
            except GraphError as error:
                raise GraphError(node.locate_message(str(error))) from None

    def fresh(self, name: str) -> str:
        """A name that no tensor has yet, nor will have: one step for each that was made."""
        number, found = self.used.get(name, 0), ""
        while not found or not self.is_free(found):
            number += 1
            found = name if number == 1 else f"{name}.{number}"
        self.used[name] = number
        return found

    def is_free(self, name: str) -> bool:
        builder = self.builder
        return not (name in self.reserved or name in builder.inputs or name in builder.constants
                    or name in builder.nodes)

    def name_of(self, index: int) -> str:
        """What the graph calls a tensor. Constants enter it where they are first read."""
        if index not in self.names:
            tensor = self.model.tensors[index]
            if tensor.dtype not in DTYPES.values():
                raise GraphError(f"{tensor.title} is {tensor.dtype}, which is not supported")
            if tensor.data is None:
                raise GraphError(f"{tensor.title} is read before it is computed; operators must "
                                 f"come in order")
            self.names[index] = self.builder.constant(
                self.fresh(tensor.name), self.numbers(tensor), tensor.quantization)
        return self.names[index]

    def numbers(self, tensor: Tensor) -> Array:
        """The numbers of a constant, of a type that graphs have."""
        assert tensor.data is not None
        if tensor.dtype == "float16":
            return self.copy(tensor.data.astype(np.float32))
        return tensor.data

    def copy(self, array: Array) -> Array:
        """An array that is no view of the file, if there is room for it."""
        self.copied += array.nbytes
        if self.copied > max(MOST_COPIES * self.model.size, COPIES_AT_LEAST):
            raise GraphError(f"its constants take more than {self.copied} bytes, many times its "
                             f"size")
        return array


@dataclass
class Node:
    """One operator of the file and what becomes of it."""

    reading: Reading
    operator: Operator
    rule: Rule

    def locate_message(self, message: str) -> str:
        """A message with the operator that it is about, which the builder may have named."""
        place = f"{self.operator.name} {self.operator.number}"
        result = self.operator.outputs[:1]
        text = message.removeprefix(f"{place}: ")
        of = f" ({self.reading.model.tensors[result[0]].title})" if result else ""
        return f"{place}{of}: {text}"

    def check_counts(self) -> None:
        """Refuse an operator with the wrong number of inputs or results."""
        least, most = self.rule.inputs
        count, results = len(self.operator.inputs), len(self.operator.outputs)
        if not least <= count <= most:
            raise GraphError(f"there are {count} inputs, but must be "
                             f"{least if least == most else f'{least} to {most}'}")
        if results != self.rule.outputs and (self.rule.outputs is not None or not results):
            raise GraphError(f"there are {results} results, but must be "
                             f"{'some' if self.rule.outputs is None else self.rule.outputs}")
        for position in range(results):
            tensor = self.declared_result(position)
            if tensor.dtype != HANDLE and (
                    tensor.dtype not in DTYPES.values() or tensor.dtype in NOT_IN_GRAPHS):
                raise GraphError(f"the result {tensor.title} is {tensor.dtype}, which is "
                                 f"not supported")

    def has(self, position: int) -> bool:
        """Whether an optional input is there."""
        inputs = self.operator.inputs
        return position < len(inputs) and inputs[position] != NO_TENSOR

    def tensor(self, position: int) -> Tensor:
        """An input as the file declares it."""
        if not self.has(position):
            raise GraphError(f"input {position} is missing")
        return self.reading.model.tensors[self.operator.inputs[position]]

    def input(self, position: int) -> str:
        """What the graph calls an input."""
        self.tensor(position)
        return self.reading.name_of(self.operator.inputs[position])

    def type(self, position: int) -> TensorType:
        return self.reading.builder.type_of(self.input(position))

    def shape(self, position: int) -> Shape:
        """The shape of an input, which does not enter the graph yet if it is constant."""
        tensor = self.tensor(position)
        return self.type(position).shape if tensor.data is None else tensor.shape

    def array(self, position: int) -> Array | None:
        """The numbers of an input, if they are known."""
        return self.reading.builder.array(self.input(position))

    def integers(self, position: int, what: str, most: int = 64) -> tuple[int, ...]:
        """An input that must be a few constant integers."""
        array = self.array(position)
        if array is None:
            raise GraphError(f"{what} ({self.tensor(position).title}) are computed by the network, "
                             f"but must be constant")
        if array.dtype.kind not in "iu" or array.ndim > 2 or array.size > most:
            raise GraphError(f"{what} are {array.dtype} of shape {array.shape}, but must be a few "
                             f"integers")
        return tuple(array.reshape(-1).tolist())

    def declared_result(self, position: int = 0) -> Tensor:
        """A result as the file declares it."""
        return self.reading.model.tensors[self.operator.outputs[position]]

    def declared_quantization(self) -> Quantization:
        """The scale of a result that must have one."""
        quantization = self.declared_result().quantization
        if quantization is None:
            raise GraphError(f"the result {self.declared_result().title} has no scale")
        return quantization

    def option(self, name: str) -> Any:
        """A setting: a number, or the default that the schema has for it."""
        with damage_is_an_error():
            return getattr(self._options(), name)()

    def option_integers(self, name: str, most: int = 64) -> tuple[int, ...]:
        """A setting that is a vector of a few integers."""
        with damage_is_an_error():
            options = self._options()
            count = getattr(options, f"{name}Length")()
            if count > most:
                raise GraphError(f"{name} has {count} numbers, but at most {most} make sense")
            return tuple(int(getattr(options, name)(index)) for index in range(count))

    def _options(self) -> Table:
        kind, given = self.operator.options_kind, self.operator.options
        options = getattr(tflite, self.rule.options)()
        if kind == "NONE" or given is None:
            options.Init(EMPTY_TABLE, 4)
        elif kind != self.rule.options:
            raise GraphError(f"its settings are {kind}, but must be {self.rule.options}")
        else:
            options.Init(given.Bytes, given.Pos)
        return options

    def add(self, operation: Operation, position: int = 0) -> None:
        """Add the operation that computes a result, of the type that the file declares."""
        tensor, index = self.declared_result(position), self.operator.outputs[position]
        if index in self.reading.names:
            raise GraphError(f"{tensor.title} is computed twice")
        self.reading.names[index] = self._add_or_fold(tensor.name, operation, tensor.dtype,
                                                      tensor.quantization)

    def give_constant(self, array: Array) -> None:
        """A result that needs no computing."""
        index = self.operator.outputs[0]
        if index in self.reading.names:
            raise GraphError(f"{self.declared_result().title} is computed twice")
        self.reading.names[index] = self.reading.builder.constant(self.declared_result().name,
                                                                  array)

    def step(self, what: str, operation: Operation, dtype: str | None = None,
             quantization: Quantization | None = None) -> str:
        """Add an operation on the way to the result; returns the name of what it computes."""
        builder = self.reading.builder
        name = self.reading.fresh(f"{self.declared_result().name}.{what}")
        if dtype is None:
            types = [builder.type_of(each) for each in operation.operands()]
            expected = self._infer_type(operation, types)
            dtype, quantization = expected.dtype, expected.quantization
        return self._add_or_fold(name, operation, dtype, quantization)

    def _infer_type(self, operation: Operation, types: list[TensorType]) -> TensorType:
        try:
            return operation.infer(*types)
        except GraphError as error:
            raise GraphError(f"{operation.title()}: {error}") from None

    def _add_or_fold(self, name: str, operation: Operation, dtype: str,
                     quantization: Quantization | None) -> str:
        """Add an operation, or its result if that is small and known: shapes are often computed
        by operators of their own."""
        builder = self.reading.builder
        builder.add(name, operation, dtype=dtype, quantization=quantization,
                    origin=f"{self.operator.name} {self.operator.number}")
        arrays = [builder.array(each) for each in operation.operands()]
        type_ = builder.type_of(name)
        if isinstance(operation, FOLDED) and type_.size <= MOST_FOLDED and all(
                each is not None and each.size <= MOST_FOLDED for each in arrays):
            values = [Value(builder.type_of(each), array) for each, array
                      in zip(operation.operands(), arrays, strict=True) if array is not None]
            with np.errstate(all="ignore"):
                result = np.asarray(operation.compute(type_, *values))
            del builder.nodes[name]
            builder.constant(name, result.astype(type_.dtype, copy=False), quantization)
        return name

    def give_existing(self, name: str, position: int = 0) -> None:
        """A result that is another tensor under another name."""
        self.add(Reshape(x=name, shape=self.reading.builder.type_of(name).shape), position)

    def constant(self, what: str, array: Array, quantization: Quantization | None = None) -> str:
        """A constant that belongs to this operator."""
        name = self.reading.fresh(f"{self.declared_result().name}.{what}")
        return self.reading.builder.constant(name, self.reading.copy(array), quantization)

    def permute(self, position: int, order: Sequence[int], real: bool = False) -> str:
        """An input with its axes in another order; a constant is stored that way. With `real`, a
        quantized constant becomes real numbers."""
        tensor, shape = self.tensor(position), self.shape(position)
        if len(shape) != len(order):
            raise GraphError(f"{tensor.title} has shape {shape}, but must have {len(order)} axes")
        if tensor.data is None:
            same = list(order) == sorted(order)
            return self.input(position) if same else self.step(
                "permuted", Transpose(x=self.input(position), order=tuple(order)))
        array, quantization = self.reading.numbers(tensor), tensor.quantization
        TensorType(array.shape, str(array.dtype), quantization)     # scales fit the shape
        if quantization is not None and real:
            array, quantization = real_numbers(array, quantization), None
        elif quantization is not None and quantization.axis is not None:
            quantization = replace(quantization,
                                   axis=list(order).index(quantization.axis % len(order)))
        moved = self.reading.copy(np.ascontiguousarray(array.transpose(order)))
        return self.reading.builder.constant(self.reading.fresh(tensor.name), moved, quantization)


def real_numbers(array: Array, quantization: Quantization) -> Array:
    """What integers stand for, in 32 bits."""
    zeros = quantization.along(quantization.zero_points, array.ndim)
    scales = quantization.along(quantization.scales, array.ndim).astype(np.float32)
    found: Array = (array.astype(np.int64) - zeros).astype(np.float32) * scales
    return found
