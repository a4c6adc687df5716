"""A TFLite file as plain records.

The accessors that the flatbuffers compiler generates trust the file, so that it is verified first.
Here every index is compared with what it points into. Tables may be shared, so that a small file
can name the same long vector very often: `Budget` bounds the sum.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from math import prod
from typing import TypeVar

import numpy as np
import tflite

from ....base.checked_values import show_name
from ....base.classes.dataclass import dataclass
from ...graph.types import MOST_AXES, Array, GraphError, Quantization, Shape
from .sparse import densify
from .verifier import Table, verify_flatbuffer

IDENTIFIER = b"TFL3"
VERSION = 3
SMALLEST = 8                    # bytes: the root's offset and the identifier
CALL_ONCE, DENSIFY = "CALL_ONCE", "DENSIFY"
NO_TENSOR = -1                  # stands for an optional input that is not there
OPEN = -1                       # a size that is known when the model runs
DAMAGE = (struct.error, ValueError, TypeError, IndexError, OverflowError, AssertionError)
DTYPES = {
    tflite.TensorType.FLOAT32: "float32", tflite.TensorType.FLOAT16: "float16",
    tflite.TensorType.FLOAT64: "float64", tflite.TensorType.INT4: "int4",
    tflite.TensorType.INT8: "int8", tflite.TensorType.UINT8: "uint8",
    tflite.TensorType.INT16: "int16", tflite.TensorType.INT32: "int32",
    tflite.TensorType.INT64: "int64", tflite.TensorType.BOOL: "bool"}
TYPE_NAMES = {value: name for name, value in vars(tflite.TensorType).items()
              if isinstance(value, int)}
OPERATOR_NAMES = {value: name for name, value in vars(tflite.BuiltinOperator).items()
                  if isinstance(value, int)}
OPTION_NAMES = {value: name for name, value in vars(tflite.BuiltinOptions).items()
                if isinstance(value, int)}
DENSE_AT_LEAST = 1 << 24        # elements that a sparse constant may have when it is dense,
MOST_DENSE = 64                 # and for each byte of the file
QUANTIZED = ("int4", "int8", "uint8", "int16")      # scales of wider integers say nothing new

Item = TypeVar("Item")


@dataclass(frozen=True)
class Tensor:
    """A tensor as the file declares it; `data` is there if it is constant."""

    name: str
    shape: Shape
    sizes: tuple[int | None, ...]   # the same, None where a user may choose
    dtype: str
    quantization: Quantization | None
    data: Array | None

    @property
    def title(self) -> str:
        """What messages call it."""
        return show_name(self.name)


@dataclass(frozen=True)
class Operator:
    """An operator. `options` is the table of its settings, of the class `options_kind`."""

    name: str
    number: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_kind: str
    options: Table


@dataclass(frozen=True)
class Model:
    """A subgraph of a file. The first one is the network; `initializers` are those that it calls
    once, by number. Others are bodies of loops."""

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    size: int                   # bytes of the file
    initializers: Mapping[int, Model] = field(default_factory=dict)


@dataclass
class Budget:
    """How many elements of vectors may still be read."""

    left: int

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise GraphError("its vectors share their elements so often that they are longer "
                             "than the whole file")


def decode_model(data: bytes) -> Model:
    """The network of a file."""
    if len(data) < SMALLEST or data[4:8] != IDENTIFIER:
        raise GraphError(f"it is no TFLite file: bytes 4 to 7 must be {IDENTIFIER.decode()}")
    verify_flatbuffer(data)
    with damage_is_an_error():
        root = tflite.Model.GetRootAs(data, 0)
        if root.Version() != VERSION:
            raise GraphError(f"its schema has version {root.Version()}, but must have {VERSION}")
        return _Decoder(root, len(data), Budget(2 * len(data))).model()


@contextmanager
def damage_is_an_error() -> Iterator[None]:
    """Whatever accessors trip over."""
    try:
        yield
    except GraphError:                      # which is a ValueError too
        raise
    except DAMAGE as error:
        raise GraphError(f"the file is damaged: {' '.join(str(error).split())[:80]}") from None


@dataclass
class _Decoder:
    root: Table
    size: int
    budget: Budget
    taken: dict[str, int] = field(default_factory=dict)     # names, and how often

    def model(self) -> Model:
        if not self.root.SubgraphsLength():
            raise GraphError("it has no subgraph")
        main = self._subgraph(0)
        numbers = dict.fromkeys(_called_subgraph(each) for each in main.operators
                                if each.name == CALL_ONCE)
        for number in numbers:
            if not 0 < number < self.root.SubgraphsLength():
                raise GraphError(f"{CALL_ONCE} names subgraph {number}, but must name one from 1 "
                                 f"to {self.root.SubgraphsLength() - 1}")
        return replace(main, initializers={number: self._subgraph(number) for number in numbers})

    def _subgraph(self, number: int) -> Model:
        graph = self.root.Subgraphs(number)
        tensors = self._items(graph.TensorsLength(),
                              lambda index: self._tensor(graph.Tensors(index), index))
        codes = self._items(self.root.OperatorCodesLength(),
                            lambda index: _operator_name(self.root.OperatorCodes(index)))
        operators = self._items(
            graph.OperatorsLength(),
            lambda index: self._operator(graph.Operators(index), index, codes, len(tensors)))
        place = f"subgraph {number}"
        tensors, operators = _densify(tensors, operators)
        return Model(tensors, operators,
                     self._indices(graph, "Inputs", len(tensors), place),
                     self._indices(graph, "Outputs", len(tensors), place), self.size)

    def _items(self, count: int, item: Callable[[int], Item]) -> tuple[Item, ...]:
        self.budget.spend(count)
        return tuple(item(index) for index in range(count))

    def _vector(self, table: Table, name: str) -> Array:
        """The numbers of a vector."""
        found = getattr(table, f"{name}AsNumpy")()
        array: Array = np.empty(0, np.int32) if isinstance(found, int) else found
        self.budget.spend(array.size)
        return array

    def _indices(self, table: Table, name: str, tensors: int, place: str,
                 least: int = 0) -> tuple[int, ...]:
        indices = tuple(self._vector(table, name).tolist())
        for index in indices:
            if not least <= index < tensors:
                raise GraphError(f"{place} names tensor {index}, but there are {tensors}")
        return indices

    def _operator(self, operator: Table, number: int, codes: tuple[str, ...],
                  tensors: int) -> Operator:
        code = operator.OpcodeIndex()
        if not 0 <= code < len(codes):
            raise GraphError(f"operator {number} has code {code}, but there are {len(codes)}")
        place = f"operator {number}"
        kind = OPTION_NAMES.get(operator.BuiltinOptionsType(), "unknown options")
        return Operator(codes[code], number,
                        self._indices(operator, "Inputs", tensors, place, NO_TENSOR),
                        self._indices(operator, "Outputs", tensors, place),
                        kind, operator.BuiltinOptions())

    def _tensor(self, tensor: Table, index: int) -> Tensor:
        name = self._name(tensor.Name(), index)
        shape = tuple(self._vector(tensor, "Shape").tolist())
        if len(shape) > MOST_AXES or min(shape, default=0) < OPEN:
            raise GraphError(f"tensor {show_name(name)} has shape {shape[:MOST_AXES + 1]}, but "
                             f"must have at most {MOST_AXES} axes of sizes that are not negative")
        dtype = DTYPES.get(tensor.Type(), TYPE_NAMES.get(tensor.Type(), str(tensor.Type())))
        if tensor.IsVariable():
            raise GraphError(f"tensor {show_name(name)} keeps its value from run to run, which is "
                             "not supported")
        try:
            return Tensor(name, shape, self._sizes(tensor, shape), dtype,
                          self._quantization(tensor, dtype), self._data(tensor, shape, dtype))
        except GraphError as error:
            raise GraphError(f"tensor {show_name(name)}: {error}") from None

    def _sizes(self, tensor: Table, shape: Shape) -> tuple[int | None, ...]:
        """A shape with its open sizes: those that are −1 in it or in the signature beside it."""
        signature = tuple(self._vector(tensor, "ShapeSignature").tolist())
        if len(signature) != len(shape):
            signature = shape
        return tuple(None if OPEN in pair else pair[0]
                     for pair in zip(shape, signature, strict=True))

    def _name(self, name: bytes | None, index: int) -> str:
        """A printable name that no other tensor has."""
        self.budget.spend(len(name or b""))
        wanted = found = _printable(name) or f"tensor{index}"
        while found in self.taken:
            self.taken[wanted] += 1
            found = f"{wanted}.{self.taken[wanted]}"
        self.taken[found] = 1
        return found

    def _quantization(self, tensor: Table, dtype: str) -> Quantization | None:
        table = tensor.Quantization()
        if table is None or dtype not in QUANTIZED:
            return None
        scales, zeros = self._vector(table, "Scale"), self._vector(table, "ZeroPoint")
        if not scales.size:
            return None
        if table.DetailsType():
            raise GraphError("its numbers have a custom quantization, which is not supported")
        axis = None if scales.size == 1 else table.QuantizedDimension()
        return Quantization(tuple(scales.tolist()), tuple(zeros.tolist()) or (0,), axis)

    def _data(self, tensor: Table, shape: Shape, dtype: str) -> Array | None:
        """The numbers of a constant, still in the file's memory."""
        index = tensor.Buffer()
        if not 0 <= index < self.root.BuffersLength():
            raise GraphError(f"it has buffer {index}, but there are {self.root.BuffersLength()}")
        buffer = self.root.Buffers(index)
        if buffer.Offset() > 1:
            raise GraphError("its numbers are outside the flatbuffer, which is not supported")
        found = buffer.DataAsNumpy()
        if index == 0 or isinstance(found, int) or (found.size == 0 and prod(shape) > 0):
            return None
        if dtype not in DTYPES.values():
            return None                     # refused where it is read
        if (sparsity := tensor.Sparsity()) is not None:
            return self._sparse(sparsity, found, shape, dtype)
        if dtype in ("int4", "bool"):
            self.budget.spend(found.size)   # these are copied
        return _numbers(found, shape, dtype)

    def _sparse(self, sparsity: Table, stored: Array, shape: Shape, dtype: str) -> Array:
        """Sparse numbers, dense. A budget of its own bounds what a small file can grow into."""
        if dtype in ("int4", "bool"):
            raise GraphError(f"its numbers are sparse {dtype}, which is not supported")
        if OPEN in shape:
            raise GraphError(f"its numbers are sparse, but its shape {shape} is open")
        if stored.size % np.dtype(dtype).itemsize:
            raise GraphError(f"it stores {stored.size} bytes, which are no whole {dtype}")
        most = DENSE_AT_LEAST + MOST_DENSE * self.size
        if prod(shape) > most:
            raise GraphError(f"its {prod(shape)} sparse numbers, dense, are too many for a file of "
                             f"{self.size} bytes")
        return densify(sparsity, stored.view(dtype), shape, Budget(4 * most))


def _densify(tensors: tuple[Tensor, ...],
             operators: tuple[Operator, ...]) -> tuple[tuple[Tensor, ...], tuple[Operator, ...]]:
    """Results of DENSIFY as constants: what it makes dense is dense when it has been read."""
    found, left = list(tensors), []
    for each in operators:
        ends = (*each.inputs, *each.outputs)
        if each.name != DENSIFY or len(ends) != 2 or NO_TENSOR in ends or (
                found[ends[0]].data is None):
            left.append(each)
            continue
        sparse, dense = found[ends[0]], found[ends[1]]
        if (sparse.shape, sparse.dtype) != (dense.shape, dense.dtype) or dense.data is not None:
            raise GraphError(f"{DENSIFY} {each.number} makes {dense.dtype} of shape {dense.shape} "
                             f"of {sparse.dtype} of shape {sparse.shape}")
        found[ends[1]] = replace(dense, data=sparse.data)
    return tuple(found), tuple(left)


def _called_subgraph(operator: Operator) -> int:
    """The subgraph that CALL_ONCE runs."""
    options = tflite.CallOnceOptions()
    if operator.options is None or operator.options_kind != "CallOnceOptions":
        raise GraphError(f"{CALL_ONCE} {operator.number} does not say which subgraph")
    options.Init(operator.options.Bytes, operator.options.Pos)
    return int(options.InitSubgraphIndex())


def _numbers(stored: Array, shape: Shape, dtype: str) -> Array:
    """Bytes as numbers. Those of 4 bits are two in a byte, the first in the low half."""
    count = prod(shape)
    needed = (count + 1) // 2 if dtype == "int4" else count * np.dtype(dtype).itemsize
    if stored.size != needed:
        raise GraphError(f"its shape {shape} of {dtype} takes {needed} bytes, but its buffer has "
                         f"{stored.size}")
    if dtype == "int4":
        halves = np.stack([stored << 4, stored], -1).reshape(-1)[:count].view(np.int8)
        signed: Array = halves >> 4
        return signed.reshape(shape)
    numbers: Array = stored != 0 if dtype == "bool" else stored.view(dtype)
    return numbers.reshape(shape)


def _operator_name(code: Table) -> str:
    """Codes above 127 are in the newer of two fields."""
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    name: str = OPERATOR_NAMES.get(number, f"operator code {number}")
    if name == "CUSTOM":
        return f"CUSTOM {_printable(code.CustomCode())}"
    return name


def _printable(text: bytes | None) -> str:
    """A name of the file, on one line whatever it holds."""
    return "".join(each if each.isprintable() else "�"
                   for each in (text or b"").decode("utf-8", "replace"))
