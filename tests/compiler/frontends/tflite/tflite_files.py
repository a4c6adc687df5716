"""TFLite files made in code, and what TFLite's reference kernels make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

TYPES = {"float32": tflite.TensorType.FLOAT32, "float16": tflite.TensorType.FLOAT16,
         "int4": tflite.TensorType.INT4, "int8": tflite.TensorType.INT8,
         "uint8": tflite.TensorType.UINT8,
         "int16": tflite.TensorType.INT16, "int32": tflite.TensorType.INT32,
         "int64": tflite.TensorType.INT64, "bool": tflite.TensorType.BOOL,
         "string": tflite.TensorType.STRING, "resource": tflite.TensorType.RESOURCE}


@dataclass
class Sparsity:
    """How a tensor is stored that is not dense. A level is a size, or segments and indices."""

    order: Sequence[int]
    levels: Sequence[int | tuple[Sequence[int], Sequence[int]]]
    blocks: Sequence[int] = ()
    vector: str = "Int32Vector"             # the type of segments and indices


@dataclass
class Subgraph:
    """Tensors and operators on them, by their numbers."""

    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: Sequence[int] = ()
    outputs: Sequence[int] = ()


@dataclass
class Tensor:
    """A tensor to be written; constant if it has data."""

    shape: Sequence[int]
    dtype: str = "float32"
    scale: float | Sequence[float] | None = None
    zero: int | Sequence[int] = 0
    axis: int = 0
    data: Any = None
    name: str | bytes = ""
    signature: Sequence[int] = ()           # the shape with its open sizes
    data_offset: int = 0                    # in the file, if the data is behind the flatbuffer
    sparsity: Sparsity | None = None

    @classmethod
    def constant(cls, data: Any, dtype: str = "int32", **settings: Any) -> Tensor:
        array = np.asarray(data, dtype)
        return cls(array.shape, dtype, data=array, **settings)


@dataclass
class Operator:
    """An operator to be written, on tensors by their numbers."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    kind: str = ""                          # of its options
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: str = ""


class Single:
    """A model of one operator. Inputs that are None are left out; those without data are fed."""

    def __init__(self, name: str, inputs: Sequence[Tensor | None],
                 outputs: Sequence[Tensor] | Tensor, kind: str = "", **options: Any):
        self.name, self.inputs, self.kind, self.options = name, list(inputs), kind, options
        self.outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)

    def data(self) -> bytes:
        there = [each for each in self.inputs if each is not None]
        numbers = iter(range(len(there)))
        indices = [-1 if each is None else next(numbers) for each in self.inputs]
        after = list(range(len(there), len(there) + len(self.outputs)))
        fed = [index for index, each in enumerate(there) if each.data is None]
        operator = Operator(self.name, indices, after, self.kind, self.options)
        return file_of([*there, *self.outputs], [operator], fed, after)


def single(*parts: Any, **options: Any) -> bytes:
    """The bytes of a model of one operator."""
    return Single(*parts, **options).data()


def file_of(tensors: Sequence[Tensor], operators: Sequence[Operator], inputs: Sequence[int],
            outputs: Sequence[int], version: int = 3) -> bytes:
    """The bytes of a model."""
    return file_of_subgraphs([Subgraph(tensors, operators, inputs, outputs)], version)


def file_of_subgraphs(subgraphs: Sequence[Subgraph], version: int = 3) -> bytes:
    """The bytes of a model; the first subgraph is the network."""
    builder = flatbuffers.Builder(1024)
    buffers = [_buffer(builder, b"")]
    names = list(dict.fromkeys((each.name, each.custom) for subgraph in subgraphs
                               for each in subgraph.operators))
    codes = [_code(builder, *each) for each in names]
    graphs = [_subgraph(builder, each, buffers, names) for each in subgraphs]
    whole = {"Subgraphs": _tables(builder, graphs), "OperatorCodes": _tables(builder, codes),
             "Buffers": _tables(builder, buffers)}
    root = _table(builder, "Model", {"Version": version, **whole})
    builder.Finish(root, b"TFL3")
    return bytes(builder.Output())


def _subgraph(builder: Any, subgraph: Subgraph, buffers: list[int],
              names: Sequence[tuple[str, str]]) -> int:
    tables = []
    for number, each in enumerate(subgraph.tensors):
        if each.data is not None:
            buffers.append(_buffer(builder, np.asarray(each.data).tobytes(), each.data_offset))
        tables.append(_tensor(builder, each, len(buffers) - 1 if each.data is not None else 0,
                              number))
    steps = [_operator(builder, each, names.index((each.name, each.custom)))
             for each in subgraph.operators]
    return _table(builder, "SubGraph", {
        "Tensors": _tables(builder, tables), "Operators": _tables(builder, steps),
        "Inputs": _integers(builder, subgraph.inputs),
        "Outputs": _integers(builder, subgraph.outputs)})


def _sparsity(builder: Any, sparsity: Sparsity) -> int:
    kind = getattr(tflite.SparseIndexVector, sparsity.vector)
    number = {"Int32Vector": np.int32, "Uint16Vector": np.uint16, "Uint8Vector": np.uint8}[
        sparsity.vector]
    levels = []
    for each in sparsity.levels:
        if isinstance(each, int):
            levels.append(_table(builder, "DimensionMetadata", {
                "Format": tflite.DimensionType.DENSE, "DenseSize": each}))
            continue
        segments, indices = (_table(builder, sparsity.vector, {
            "Values": builder.CreateNumpyVector(np.asarray(values, number))}) for values in each)
        levels.append(_table(builder, "DimensionMetadata", {
            "Format": tflite.DimensionType.SPARSE_CSR, "ArraySegmentsType": kind,
            "ArraySegments": segments, "ArrayIndicesType": kind, "ArrayIndices": indices}))
    parts = {"TraversalOrder": _integers(builder, sparsity.order),
             "DimMetadata": _tables(builder, levels)}
    if sparsity.blocks:
        parts["BlockMap"] = _integers(builder, sparsity.blocks)
    return _table(builder, "SparsityParameters", parts)


def _table(builder: Any, kind: str, fields: Mapping[str, Any]) -> int:
    getattr(tflite, f"{kind}Start")(builder)
    for name, value in fields.items():
        getattr(tflite, f"{kind}Add{name}")(builder, value)
    return getattr(tflite, f"{kind}End")(builder)


def _integers(builder: Any, values: Sequence[int]) -> int:
    return builder.CreateNumpyVector(np.asarray(values, np.int32))


def _tables(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for each in reversed(offsets):
        builder.PrependUOffsetTRelative(each)
    return builder.EndVector()


def _buffer(builder: Any, data: bytes, offset: int = 0) -> int:
    if not data:
        return _table(builder, "Buffer", {})
    builder.StartVector(1, len(data), 16)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head:builder.head + len(data)] = data
    return _table(builder, "Buffer", {"Data": builder.EndVector(), "Offset": offset})


def _tensor(builder: Any, tensor: Tensor, buffer: int, number: int) -> int:
    fields = {"Type": TYPES[tensor.dtype], "Buffer": buffer,
              "Name": builder.CreateString(tensor.name or f"t{number}"),
              "Shape": _integers(builder, tensor.shape)}
    if tensor.signature:
        fields["ShapeSignature"] = _integers(builder, tensor.signature)
    if tensor.scale is not None:
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        zeros = np.broadcast_to(np.asarray(tensor.zero, np.int64), scales.shape).copy()
        fields["Quantization"] = _table(builder, "QuantizationParameters", {
            "Scale": builder.CreateNumpyVector(scales),
            "ZeroPoint": builder.CreateNumpyVector(zeros), "QuantizedDimension": tensor.axis})
    if tensor.sparsity is not None:
        fields["Sparsity"] = _sparsity(builder, tensor.sparsity)
    return _table(builder, "Tensor", fields)


def _code(builder: Any, name: str, custom: str) -> int:
    number = getattr(tflite.BuiltinOperator, name)
    fields = {"DeprecatedBuiltinCode": min(number, 127), "BuiltinCode": number,
              "Version": 2 if name == "BROADCAST_TO" else 1}
    if custom:
        fields["CustomCode"] = builder.CreateString(custom)
    return _table(builder, "OperatorCode", fields)


def _operator(builder: Any, operator: Operator, code: int) -> int:
    options = {name: _integers(builder, value) if isinstance(value, list | tuple)
               else builder.CreateString(value) if isinstance(value, str) else value
               for name, value in operator.options.items()}
    fields = {"OpcodeIndex": code, "Inputs": _integers(builder, operator.inputs),
              "Outputs": _integers(builder, operator.outputs)}
    if operator.kind:
        fields["BuiltinOptions"] = _table(builder, operator.kind, options)
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, operator.kind)
    return _table(builder, "Operator", fields)


def reference(data: bytes, inputs: Sequence[np.ndarray], *,
              optimized: bool = False) -> list[np.ndarray]:
    """What TFLite's reference kernels give, or those it prefers on this machine."""
    return reference_frames(data, [inputs], optimized=optimized)[0]


def reference_frames(data: bytes, frames: Sequence[Sequence[np.ndarray]], *,
                     optimized: bool = False) -> list[list[np.ndarray]]:
    """The same for frames one after the other, with what is remembered between them."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if optimized
               else OpResolverType.BUILTIN_REF)
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    results = []
    for inputs in frames:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(each["index"])
                        for each in interpreter.get_output_details()])
    return results
