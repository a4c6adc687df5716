"""Integer operators that ONNX Runtime adds to ONNX."""

from __future__ import annotations

from math import prod

import numpy as np

from ......isa.instructions import Rounding
from .....graph.evaluate_graph import compute_node
from .....graph.graph import Node
from .....graph.operation import Operation, Value, normalize_axis
from .....graph.operations.data_movement.shape import Concat, Transpose
from .....graph.operations.layers.matmul import MatMul
from .....graph.operations.layers.normalization import Softmax
from .....graph.operations.layers.reduction import Reduce, ReduceKind
from .....graph.operations.layers.window import Pair, Pool, PoolKind
from .....graph.operations.pointwise.binary import Binary, BinaryKind
from .....graph.operations.pointwise.quantize import Dequantize, Lookup, Quantize, Rescale
from .....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from .....graph.types import Array, GraphError, Quantization, TensorType
from ...call import Call
from ...operator_table import MICROSOFT, operator
from ..data_movement import axes_of
from ..vision.convolutions import kernel_shape, place, sides_of
from ..weights import rearrange
from .quantize_linear import attach_quantization, bias_of, quantization_of, scales_of, stored_type


@operator("QLinearAdd QLinearMul", domain=MICROSOFT)
def binary(call: Call) -> None:
    kind = BinaryKind.ADD if call.node.op_type == "QLinearAdd" else BinaryKind.MUL
    left, right, known = attach_quantization(call, 0, 1, 2), attach_quantization(call, 3, 4, 5), (
        quantization_of(call, 6, 7))
    scales: tuple[float, ...] = ()
    if kind == BinaryKind.MUL:
        real = scales_of(call, 1) * scales_of(call, 4) / scales_of(call, 6)
        scales = tuple(real.astype(np.float32).tolist())
    call.give(Binary(kind=kind, left=left, right=right, scales=scales, rounding=Rounding.EVEN),
              quantization=known)


@operator("QGemm", "alpha transA transB", domain=MICROSOFT)
def gemm(call: Call) -> None:
    turned = call.flag("transB")
    left, right = attach_quantization(call, 0, 1, 2), attach_quantization(call, 3, 4, 5,
                                                                          0 if turned else 1)
    if call.flag("transA"):
        left = call.move(Transpose(x=left, order=(1, 0)), left)
    if turned:
        right = rearrange(call, right, lambda array: array.T, {0: 1, 1: 0},
                          Transpose(x=right, order=(1, 0)))
    bias = bias_of(call, 6)
    if bias is not None:
        bias = call.reshape(bias, (call.type_of(right).shape[-1],))
    scale = np.float32(call.real("alpha", 1)) * scales_of(call, 1) * scales_of(call, 4)
    if call.has(7):
        real = (scale / scales_of(call, 7)).astype(np.float32)
        call.give(MatMul(left=left, right=right, bias=bias, scales=tuple(real.tolist()),
                         rounding=Rounding.EVEN),
                  dtype=stored_type(call, 8), quantization=quantization_of(call, 7, 8))
        return
    total = call.add(Cast(x=call.add(MatMul(left=left, right=right, bias=bias)), dtype="float32"))
    call.give(Binary(kind=BinaryKind.MUL, left=total, right=call.constant(scale)))


def table_of(operation: Operation, x: TensorType, result: TensorType) -> Array:
    """The results of a function for every integer of 8 bits, from the least on: as real numbers of
    32 bits, rounded to integers."""
    low, high = x.range
    stored = TensorType((high - low + 1,), x.dtype, x.quantization)
    real = TensorType(stored.shape, "float32")
    every = compute_node(Node(Dequantize(x="x"), real), [
        Value(stored, np.arange(low, high + 1).astype(x.dtype))])
    values = compute_node(Node(operation, real), [Value(real, every)])
    return compute_node(Node(Quantize(x="x"), TensorType(stored.shape, result.dtype,
                                                         result.quantization)),
                        [Value(real, values)])


@operator("QLinearLeakyRelu", "alpha", domain=MICROSOFT)
def leaky_relu(call: Call) -> None:
    _function(call, Unary(kind=UnaryKind.LEAKY_RELU, x="x",
                          alpha=call.real("alpha", float(np.float32(0.01)))))


@operator("QLinearSigmoid", domain=MICROSOFT)
def sigmoid(call: Call) -> None:
    _function(call, Unary(kind=UnaryKind.SIGMOID, x="x"))


def _function(call: Call, operation: Operation) -> None:
    x, known = attach_quantization(call, 0, 1, 2), quantization_of(call, 3, 4)
    dtype = call.type_of(x).dtype
    if dtype not in ("int8", "uint8"):
        raise GraphError(f"the input is {dtype}, but must be int8 or uint8")
    table = table_of(operation, call.type_of(x), TensorType((256,), dtype, known))
    call.give(Lookup(x=x, table=call.constant(table, known)), quantization=known)


@operator("QLinearSoftmax", "axis opset", domain=MICROSOFT)
def softmax(call: Call) -> None:
    x = call.add(Dequantize(x=attach_quantization(call, 0, 1, 2)))
    shape = call.type_of(x).shape
    axis = normalize_axis(call.integer("axis", -1), len(shape))
    if call.integer("opset", 13) < 13:
        x = call.reshape(x, (prod(shape[:axis]), prod(shape[axis:])))
        axis = 1
    soft = call.reshape(call.add(Softmax(x=x, axis=axis)), shape)
    call.give(Quantize(x=soft), dtype=stored_type(call, 4),
              quantization=quantization_of(call, 3, 4))


@operator("QLinearConcat", "axis", domain=MICROSOFT)
def concat(call: Call) -> None:
    if len(call) < 5 or len(call) % 3 != 2:
        raise GraphError(f"there are {len(call)} operands, but must be two and three for each part")
    known, dtype = quantization_of(call, 0, 1), stored_type(call, 1)
    parts = []
    for each in range(2, len(call), 3):
        part = attach_quantization(call, each, each + 1, each + 2)
        if call.type_of(part).quantization != known or call.type_of(part).dtype != dtype:
            part = call.add(Rescale(x=part, rounding=Rounding.EVEN), dtype=dtype,
                            quantization=known)
        parts.append(part)
    call.give(Concat(parts=tuple(parts), axis=call.integer("axis", 0)), quantization=known)


def _ratio(call: Call) -> tuple[float, ...]:
    """By how much an average is scaled."""
    found = scales_of(call, 1) / scales_of(call, 3)
    return tuple(found.astype(np.float32).tolist())


@operator("QLinearAveragePool", "auto_pad ceil_mode channels_last count_include_pad kernel_shape "
          "pads strides", domain=MICROSOFT)
def average_pool(call: Call) -> None:
    if call.flag("ceil_mode"):
        raise GraphError("ceil_mode is not supported")
    x = attach_quantization(call, 0, 1, 2)
    shape, last = call.type_of(x).shape, call.flag("channels_last")
    if len(shape) != 4 or "kernel_shape" not in call.attributes:
        raise GraphError("images must have two dimensions, and a kernel_shape must be given")
    rows, columns = sides_of(call, shape[1:3] if last else shape[2:], kernel_shape(call, 2))
    where = place(rows, columns)
    call.give(Pool(x=x, kind=PoolKind.AVERAGE, kernel=where.kernel, stride=where.stride,
                   pad=where.pad, channel_axis=3 if last else 1,
                   count_include_pad=call.flag("count_include_pad"), scales=_ratio(call),
                   rounding=Rounding.EVEN), quantization=quantization_of(call, 3, 4))


@operator("QLinearGlobalAveragePool", "channels_last", domain=MICROSOFT)
def global_average_pool(call: Call) -> None:
    x, last = attach_quantization(call, 0, 1, 2), call.flag("channels_last")
    shape = call.type_of(x).shape
    if len(shape) != 4:
        raise GraphError(f"the input has shape {shape}, but must have 4 axes")
    sides: Pair = (shape[1], shape[2]) if last else (shape[2], shape[3])
    call.give(Pool(x=x, kind=PoolKind.AVERAGE, kernel=sides, channel_axis=3 if last else 1,
                   scales=_ratio(call), rounding=Rounding.EVEN),
              quantization=quantization_of(call, 3, 4))


@operator("QLinearReduceMean", "axes keepdims", domain=MICROSOFT)
def mean(call: Call) -> None:
    x = attach_quantization(call, 0, 1, 2)
    shape = call.type_of(x).shape
    axes = axes_of(call, 5, len(shape)) or tuple(range(len(shape)))
    count = max(prod(shape[axis] for axis in axes), 1)
    known: Quantization = quantization_of(call, 3, 4)
    call.give(Reduce(kind=ReduceKind.MEAN, x=x, axes=axes, keep=call.flag("keepdims", True),
                     scales=tuple(each / count for each in _ratio(call)), rounding=Rounding.EVEN),
              quantization=known)
