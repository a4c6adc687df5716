"""An ONNX file as protocol buffers, and its tensors as arrays. Nothing outside the file is read,
and no more memory is taken than the file itself justifies."""

from __future__ import annotations

from math import prod

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from ....base.arrays import Dtype
from ....base.checked_values import quote
from ...graph.types import MOST_AXES, Array, GraphError

# Numbers of a type, and the field of a tensor that holds them unless they are raw bytes.
DTYPES: dict[int, tuple[str, str]] = {
    TensorProto.FLOAT: ("float32", "float_data"), TensorProto.DOUBLE: ("float64", "double_data"),
    TensorProto.FLOAT16: ("float16", "int32_data"),
    TensorProto.INT8: ("int8", "int32_data"), TensorProto.UINT8: ("uint8", "int32_data"),
    TensorProto.INT16: ("int16", "int32_data"), TensorProto.UINT16: ("uint16", "int32_data"),
    TensorProto.INT32: ("int32", "int32_data"), TensorProto.UINT32: ("uint32", "uint64_data"),
    TensorProto.INT64: ("int64", "int64_data"), TensorProto.UINT64: ("uint64", "uint64_data"),
    TensorProto.BOOL: ("bool", "int32_data")}

# Of 4 bits, two to a byte: these are types of constants alone, and become bytes.
HALVES: dict[int, str] = {TensorProto.INT4: "int8", TensorProto.UINT4: "uint8"}

STORED = {"float_data": np.float32, "double_data": np.float64, "int32_data": np.int32,
          "int64_data": np.int64, "uint64_data": np.uint64}


def parse_model(data: bytes) -> ModelProto:
    """The model in a file."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError):
        raise GraphError("this is no ONNX model, or only part of one") from None
    if not model.HasField("graph"):
        raise GraphError("this is no ONNX model: it has no graph")
    return model


def type_name(number: int) -> str:
    """What ONNX calls a type of numbers."""
    try:
        return str(TensorProto.DataType.Name(number))
    except ValueError:
        return f"type {number}"


def dtype_of(number: int) -> str:
    """The type of numbers that ONNX gives a number."""
    if number not in DTYPES:
        raise GraphError(f"{type_name(number)} is not supported; types are "
                         f"{', '.join(type_name(each) for each in DTYPES)}")
    return DTYPES[number][0]


def number_of(dtype: str) -> int:
    """The number that ONNX gives a type of numbers."""
    return next(number for number, (name, _) in DTYPES.items() if name == dtype)


def array_of(tensor: TensorProto, *, halves: bool = False) -> Array:
    """The numbers of a tensor that is in the file; those of 4 bits too, if `halves`."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise GraphError(f"the tensor {quote(tensor.name)} is in another file; save the model as a "
                         f"single one")
    packed = halves and tensor.data_type in HALVES
    name, field = (("uint8", "int32_data") if packed else
                   (dtype_of(tensor.data_type), DTYPES[tensor.data_type][1]))
    dtype, shape = np.dtype(name), tuple(tensor.dims)
    if len(shape) > MOST_AXES or min(shape, default=0) < 0:
        raise GraphError(f"the tensor {quote(tensor.name)} has shape {quote(shape)}, but must have "
                         f"at most {MOST_AXES} axes")
    if tensor.raw_data and any(len(getattr(tensor, each)) for each in STORED):
        raise GraphError(f"the tensor {quote(tensor.name)} has raw bytes and numbers beside them")
    count = -(-prod(shape) // 2) if packed else prod(shape)
    if tensor.raw_data:
        found = np.frombuffer(_check_complete(tensor, len(tensor.raw_data), count * dtype.itemsize,
                                              "bytes").raw_data, dtype.newbyteorder("<"))
    else:
        values = getattr(tensor, field)
        _check_complete(tensor, len(values), count, "pairs of numbers" if packed else "numbers")
        found = _field_array(np.array(values, STORED[field]), dtype)
    found = found.astype(dtype)
    if packed:
        found = _unpack_nibbles(found, HALVES[tensor.data_type])[:prod(shape)]
    return found.reshape(shape)


def _unpack_nibbles(pairs: Array, dtype: str) -> Array:
    """Numbers of 4 bits, of which the first of a pair is in the low half of its byte."""
    numbers = np.stack([pairs & 0xF, pairs >> 4], axis=-1).reshape(-1).astype(np.int8)
    if dtype == "int8":
        numbers = np.where(numbers > 7, numbers - 16, numbers)
    return numbers.astype(dtype)


def _field_array(numbers: Array, dtype: Dtype) -> Array:
    """The numbers of a field; those of 16 bits that are real are there by their bits."""
    return numbers.astype(np.uint16).view(dtype) if dtype == np.float16 else numbers


def _check_complete(tensor: TensorProto, has: int, needs: int, what: str) -> TensorProto:
    if has != needs:
        raise GraphError(f"the tensor {quote(tensor.name)} of shape {tuple(tensor.dims)} has {has} "
                         f"{what}, but must have {needs}")
    return tensor
