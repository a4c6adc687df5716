"""Between real numbers and integers: what ONNX itself has of quantization."""

from __future__ import annotations

import numpy as np

from ......isa.instructions import Rounding
from .....graph.operation import normalize_axis
from .....graph.operations.data_movement.indexing import Expand
from .....graph.operations.layers.matmul import MatMul
from .....graph.operations.pointwise.binary import Binary, BinaryKind
from .....graph.operations.pointwise.quantize import Dequantize, Quantize
from .....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from .....graph.types import Array, GraphError, Quantization
from ...call import Call
from ...onnx_file import dtype_of
from ...operator_table import MICROSOFT, operator
from ..data_movement import build_slice
from ..vision.convolutions import convolve

STORED = ("int8", "uint8", "int16", "uint16")


def scales_of(call: Call, number: int) -> Array:
    """The operand that holds scales, as real numbers of 32 bits."""
    found = call.array(number, "the scale")
    if found.dtype not in (np.float32, np.float16) or found.ndim > 1 or not found.size:
        raise GraphError(f"the scale is {found.dtype} of shape {found.shape}, but must be a number "
                         f"or a list of numbers, FLOAT or FLOAT16")
    return found.ravel().astype(np.float32)


def quantization_of(call: Call, scale: int, zero: int, axis: int = 0) -> Quantization:
    """The scales and zero points that two operands hold, along an axis if there are several."""
    scales = scales_of(call, scale)
    zeros = call.array(zero, "the zero point").ravel() if call.has(zero) else np.zeros(1, np.int8)
    if zeros.dtype.kind not in "iu" or zeros.size not in (1, scales.size):
        raise GraphError(f"zero points are {zeros.dtype} of shape {zeros.shape}, but must be "
                         f"integers, one or as many as there are scales, {scales.size}")
    return Quantization(tuple(scales.tolist()), tuple(zeros.tolist()),
                        None if scales.size == 1 else axis)


def stored_type(call: Call, zero: int) -> str:
    """The type of the integers that a zero point belongs to."""
    dtype = str(call.array(zero, "the zero point").dtype) if call.has(zero) else "uint8"
    if dtype not in STORED:
        raise GraphError(f"the result is {dtype}, but must be one of {', '.join(STORED)}")
    return dtype


def attach_quantization(call: Call, number: int, scale: int, zero: int, axis: int = 0) -> str:
    """An operand with the scale and zero point that other operands hold."""
    rank = len(call.type(number).shape)
    known = quantization_of(call, scale, zero, normalize_axis(axis, rank) if rank else 0)
    return call.reader.quantize(call.operand_name(number), known)


def _axis(call: Call, scale: int) -> int:
    rank = len(call.type(0).shape)
    return normalize_axis(call.integer("axis", 1), rank) if scales_of(call, scale).size > 1 else 0


@operator("QuantizeLinear", "axis block_size output_dtype precision saturate", since=10)
def quantize(call: Call) -> None:
    wanted = call.integer("output_dtype", 0)
    dtype = dtype_of(wanted) if wanted and not call.has(2) else stored_type(call, 2)
    if call.integer("block_size", 0):
        _quantize_blocks(call, dtype)
        return
    known = quantization_of(call, 1, 2, _axis(call, 1))
    call.give(Quantize(x=call.plain_operand(0)), dtype=dtype, quantization=known)


@operator("DequantizeLinear", "axis block_size output_dtype", since=10)
def dequantize(call: Call) -> None:
    wanted = call.integer("output_dtype", 0)
    dtype = dtype_of(wanted) if wanted else call.type(1).dtype
    if call.integer("block_size", 0):
        whole = call.cast(call.plain_operand(0), dtype)
        if call.has(2):
            whole = call.add(Binary(kind=BinaryKind.SUB, left=whole, right=_blocks(call, 2, dtype)))
        call.give(Binary(kind=BinaryKind.MUL, left=whole, right=_blocks(call, 1, dtype)))
        return
    operation = Dequantize(x=attach_quantization(call, 0, 1, 2, _axis(call, 1)))
    if dtype == "float32":
        call.give(operation)
    else:
        call.give(Cast(x=call.add(operation), dtype=dtype))


def _blocks(call: Call, number: int, dtype: str) -> str:
    """Scales or zero points of blocks along an axis, each as often as its block is long."""
    shape, size = call.type(0).shape, call.integer("block_size", 0)
    axis = normalize_axis(call.integer("axis", 1), len(shape))
    given = call.array(number, "the scale" if number == 1 else "the zero point")
    count = -(-shape[axis] // size) if size > 0 else -1
    if given.shape != (*shape[:axis], count, *shape[axis + 1:]):
        raise GraphError(f"blocks of {size} along axis {axis} of {shape} have numbers of shape "
                         f"{given.shape}")
    size = min(size, shape[axis])               # steps, so that nothing large is made here
    column = call.constant(given.astype(dtype).reshape(*shape[:axis], count, 1, *shape[axis + 1:]))
    wide = call.add(Expand(x=column, shape=(*shape[:axis], count, size, *shape[axis + 1:])))
    whole = (*shape[:axis], count * size, *shape[axis + 1:])
    flat = call.reshape(wide, whole)
    return call.add(build_slice(flat, whole, {axis: (0, shape[axis], 1)}))


def _quantize_blocks(call: Call, dtype: str) -> None:
    x = call.plain_operand(0)
    real = call.type_of(x).dtype
    ratio = call.add(Binary(kind=BinaryKind.DIV, left=x, right=_blocks(call, 1, real)))
    rounded = call.add(Unary(kind=UnaryKind.ROUND, x=ratio))
    if call.has(2):
        rounded = call.add(Binary(kind=BinaryKind.ADD, left=rounded, right=_blocks(call, 2, real)))
    call.give(Cast(x=rounded, dtype=dtype))         # saturates


@operator("QuantizeLinear", "axis", domain=MICROSOFT)
def other_quantize(call: Call) -> None:
    quantize(call)


@operator("DequantizeLinear", "axis", domain=MICROSOFT)
def other_dequantize(call: Call) -> None:
    dequantize(call)


def multipliers(call: Call, left: int, right: int, result: int) -> tuple[float, ...]:
    """By how much sums of products are scaled, in real numbers of 32 bits as ONNX Runtime has
    them."""
    after = scales_of(call, result)
    if after.size != 1 or scales_of(call, left).size != 1:
        raise GraphError("the first operand and the result must have a single scale")
    found = scales_of(call, left) * scales_of(call, right) / after
    return tuple(found.astype(np.float32).tolist())


def bias_of(call: Call, number: int) -> str | None:
    """Integers that are added to sums, if there are any."""
    if not call.has(number):
        return None
    if call.type(number).dtype != "int32":
        raise GraphError(f"the bias is {call.type(number)}, but must be int32")
    return call.plain_operand(number)


@operator("QLinearConv", "auto_pad dilations group kernel_shape pads strides", since=10)
def integer_convolution(call: Call) -> None:
    convolve(call, attach_quantization(call, 0, 1, 2), attach_quantization(call, 3, 4, 5),
             bias_of(call, 8),
             scaled={"scales": multipliers(call, 1, 4, 6), "rounding": Rounding.EVEN},
             dtype=stored_type(call, 7), quantization=quantization_of(call, 6, 7))


@operator("QLinearMatMul", since=10)
def integer_product(call: Call) -> None:
    left, right = attach_quantization(call, 0, 1, 2), attach_quantization(call, 3, 4, 5, -1)
    call.give(MatMul(left=left, right=right, scales=multipliers(call, 1, 4, 6),
                     rounding=Rounding.EVEN),
              dtype=stored_type(call, 7), quantization=quantization_of(call, 6, 7))


def subtract_zero_point(call: Call, tensor: str, zero: str | None, axis: int) -> str:
    """A tensor as integers that stand for themselves less a zero point."""
    if zero is None:
        return tensor
    rank = len(call.type_of(tensor).shape)
    zeros = call.reader.builder.array(zero)
    if zeros is not None and zeros.ndim < 2 and zeros.size and zeros.dtype.kind in "iu":
        count = zeros.size
        return call.reader.reinterpret(tensor, Quantization(
            (1.0,) * count, tuple(zeros.ravel().tolist()),
            None if count == 1 else normalize_axis(axis, rank)))
    wide, subtracted = call.cast(tensor, "int32"), call.cast(zero, "int32")
    if len(call.type_of(subtracted).shape) == 1 and call.type_of(subtracted).size > 1:
        shape = [1] * rank
        shape[normalize_axis(axis, rank)] = -1
        sizes = tuple(call.type_of(subtracted).size if each == -1 else each for each in shape)
        subtracted = call.reshape(subtracted, sizes)
    return call.add(Binary(kind=BinaryKind.SUB, left=wide, right=subtracted))
