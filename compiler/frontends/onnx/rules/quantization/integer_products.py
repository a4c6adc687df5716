"""Products of integers whose zero points may be known at run time only, as `quantize_dynamic` makes
them.

The accelerator multiplies stored numbers of 8 bits, so zero points are taken off the sums:

    Σ (a − za) × (b − zb) = Σ a × b − zb × Σ a − za × Σ (b − zb)

What is constant stays part of an operand: a scalar zero point, and weights less their zero points
where that fits 8 bits. Sums wrap in 32 bits, so this is exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ......base.classes.dataclass import dataclass
from .....graph.operation import Operation
from .....graph.operations.data_movement.indexing import Expand
from .....graph.operations.data_movement.shape import Concat
from .....graph.operations.layers.reduction import Reduce, ReduceKind
from .....graph.operations.layers.window import Conv
from .....graph.operations.pointwise.binary import Binary, BinaryKind
from .....graph.operations.pointwise.logic import Compare, CompareKind, Where
from .....graph.operations.pointwise.quantize import Clamp
from .....graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from .....graph.types import Array, Quantization
from ...call import Call
from ...operator_table import MICROSOFT, operator
from ..matrices import product_of
from ..vision.convolutions import PLACE, as_images, convolve, give_images, kernel_of, place_of
from .quantize_linear import subtract_zero_point

BYTES = ("int8", "uint8")
MIDDLE = 128
PLAIN = Quantization((1.0,), (0,))


@dataclass(frozen=True)
class Factor:
    """One side of a product: integers of 8 bits less a constant zero point, and another zero point
    that remains to be taken off the sums: int32, one number or one for each column."""

    tensor: str
    rest: str | None = None


def _left_factor(call: Call, tensor: str, zero: str | None) -> Factor | None:
    """The left side, whose zero point must be one number."""
    if call.type_of(tensor).dtype not in BYTES or not call.type_of(tensor).shape:
        return None
    if zero is None:
        return Factor(call.reader.reinterpret(tensor, PLAIN))
    known = call.reader.builder.array(zero)
    if _is_late(call, zero):
        return Factor(call.reader.reinterpret(tensor, PLAIN), _number(call, zero))
    if known is None or known.size != 1:
        return None
    constant = replace(PLAIN, zero_points=(int(known.item()),))
    return Factor(call.reader.reinterpret(tensor, constant))


def _right_factor(call: Call, tensor: str, zero: str | None) -> Factor | None:
    """The right side, whose zero point may be one for each column if it is constant."""
    type_, array = call.type_of(tensor), call.reader.builder.array(tensor)
    if type_.dtype not in BYTES or not type_.shape:
        return None
    known = np.zeros(1, np.int32) if zero is None else call.reader.builder.array(zero)
    if zero is not None and _is_late(call, zero):
        return Factor(call.reader.reinterpret(tensor, PLAIN), _number(call, zero))
    if known is None or known.ndim > 1 or known.size not in (1, type_.shape[-1]):
        return None
    zeros = known.astype(np.int32).reshape(-1)
    if array is None:
        return Factor(call.reader.reinterpret(tensor, PLAIN),
                      call.constant(zeros) if zeros.any() else None)
    if _is_byte(array.astype(np.int32) - zeros):
        return Factor(call.constant((array.astype(np.int32) - zeros).astype(np.int8), PLAIN))
    middle = MIDDLE if array.dtype == np.uint8 else 0
    return Factor(call.constant((array.astype(np.int32) - middle).astype(np.int8), PLAIN),
                  call.constant(zeros - np.int32(middle)))


def _is_late(call: Call, zero: str) -> bool:
    """Whether a zero point is one number that is known at run time only."""
    return call.type_of(zero).size == 1 and call.reader.builder.array(zero) is None


def _is_byte(values: Array) -> bool:
    return bool(values.min(initial=0) >= -MIDDLE and values.max(initial=0) < MIDDLE)


def _number(call: Call, tensor: str) -> str:
    """A single number as a scalar of 32 bits."""
    return call.reshape(call.cast(tensor, "int32"), ())


def integer_sums(call: Call, left: str, left_zero: str | None, right: str,
                 right_zero: str | None) -> Operation:
    """The last operation of a product of integers, in 32 bits."""
    one, other = _left_factor(call, left, left_zero), _right_factor(call, right, right_zero)
    if one is None or other is None:
        left, right = (call.reader.reinterpret(each, None) for each in (left, right))
        return product_of(call, subtract_zero_point(call, left, left_zero, -2),
                          subtract_zero_point(call, right, right_zero, -1))
    result = product_of(call, one.tensor, other.tensor)
    if one.rest is None and other.rest is None:
        return result
    total = call.add(result)
    ranks = len(call.type_of(left).shape), len(call.type_of(right).shape)
    if other.rest is not None:
        rows = _sums(call, one.tensor, -1, keep=ranks[1] > 1)
        result = _difference(total, _times(call, rows, other.rest))
        if one.rest is None:
            return result
        total = call.add(result)
    assert one.rest is not None, "one of them is there"
    columns = _sums(call, other.tensor, -min(ranks[1], 2), keep=min(ranks) > 1)
    if other.rest is not None:
        depth = call.scalar(call.type_of(left).shape[-1], "int32")
        columns = call.add(_difference(columns, _times(call, other.rest, depth)))
    return _difference(total, _times(call, columns, one.rest))


def _times(call: Call, left: str, right: str) -> str:
    return call.add(Binary(kind=BinaryKind.MUL, left=left, right=right))


def _difference(left: str, right: str) -> Binary:
    return Binary(kind=BinaryKind.SUB, left=left, right=right)


def _sums(call: Call, tensor: str, axis: int, *, keep: bool) -> str:
    """Sums along an axis of integers of 8 bits less their zero point."""
    type_ = call.type_of(tensor)
    zero, place = type_.require_quantization().zero_point, len(type_.shape) + axis
    array = call.reader.builder.array(tensor)
    if array is not None:
        sums = (array.astype(np.int64) - zero).sum(axis=place, keepdims=keep)
        return call.constant(np.asarray(sums).astype(np.int32))
    wide = call.cast(call.reader.reinterpret(tensor, None), "int32")
    found = call.add(Reduce(kind=ReduceKind.SUM, x=wide, axes=(place,), keep=keep))
    count = call.scalar(zero * type_.shape[place], "int32")
    return call.add(_difference(found, count)) if zero else found


def _optional(call: Call, number: int) -> str | None:
    return call.plain_operand(number) if call.has(number) else None


@operator("MatMulInteger")
def integer_product(call: Call) -> None:
    call.give(integer_sums(call, call.plain_operand(0), _optional(call, 2), call.plain_operand(1),
                           _optional(call, 3)))


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def integer_product_as_real(call: Call) -> None:
    sums = integer_sums(call, call.plain_operand(0), _optional(call, 4), call.plain_operand(1),
                        _optional(call, 5))
    _give_real(call, sums, call.plain_operand(2), call.plain_operand(3), _optional(call, 6))


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_product(call: Call) -> None:
    stored, scale, zero = _quantize_dynamically(call, call.plain_operand(0))
    sums = integer_sums(call, call.add(stored), call.add(zero), call.plain_operand(1),
                        _optional(call, 3))
    _give_real(call, sums, scale, call.plain_operand(2), _optional(call, 4))


def _give_real(call: Call, sums: Operation, left: str, right: str, bias: str | None) -> None:
    """Sums times the scales of both sides, and a bias."""
    real = call.cast(call.add(sums), "float32")
    times = Binary(kind=BinaryKind.MUL, left=real, right=_times(call, left, right))
    call.give(times if bias is None else
              Binary(kind=BinaryKind.ADD, left=call.add(times), right=bias))


@operator("ConvInteger", PLACE, since=10)
def integer_convolution(call: Call) -> None:
    """A border of zero points that are known at run time only is put around the image here."""
    x, zero, weights = call.plain_operand(0), _optional(call, 2), call.plain_operand(1)
    kernel = _weights_of(call, weights, _optional(call, 3))
    if zero is None or kernel is None or not _is_late(call, zero) or (
            call.type_of(x).dtype not in BYTES):
        convolve(call, _image_of(call, x, zero), kernel or subtract_zero_point(
            call, weights, _optional(call, 3), 0), None)
        return
    dimensions = len(call.type_of(x).shape) - 2
    images, kernel = as_images(call, x), kernel_of(call, kernel, dimensions)
    outputs, _, *taps = call.type_of(kernel).shape
    place = place_of(call, images, dimensions, (taps[0], taps[1]))
    images = _pad_at_run_time(call, images, place.pad, zero)
    operation = Conv(x=call.reader.reinterpret(images, PLAIN), weights=kernel,
                     stride=place.stride, dilation=place.dilation,
                     groups=call.integer("group", 1), channel_axis=1)
    sums = _channel_sums(call, kernel, (outputs, 1, 1))
    more = _times(call, sums, _number(call, zero))
    give_images(call, _difference(call.add(operation), more), dimensions)


def _image_of(call: Call, x: str, zero: str | None) -> str:
    if zero is None and call.type_of(x).dtype in BYTES:
        return call.reader.reinterpret(x, PLAIN)
    return subtract_zero_point(call, x, zero, 1)


def _weights_of(call: Call, tensor: str, zero: str | None) -> str | None:
    """Constant weights of a convolution; less their zero points where that fits 8 bits."""
    array = call.reader.builder.array(tensor)
    known = np.zeros(1, np.int32) if zero is None else call.reader.builder.array(zero)
    if array is None or str(array.dtype) not in BYTES or known is None or known.ndim > 1 or (
            known.size not in (1, *array.shape[:1])):
        return None
    zeros = known.astype(np.int32).reshape(-1, *(1,) * (array.ndim - 1))
    values = array.astype(np.int32) - zeros
    return call.constant(values.astype(np.int8), PLAIN) if _is_byte(values) else (
        subtract_zero_point(call, tensor, zero, 0))


def _channel_sums(call: Call, weights: str, shape: tuple[int, ...]) -> str:
    """The sum of all weights of each output less their zero points."""
    array, type_ = call.reader.builder.array(weights), call.type_of(weights)
    assert array is not None, "others have no constant sums"
    zeros = type_.require_quantization().along(type_.require_quantization().zero_points, array.ndim)
    sums = (array.astype(np.int64) - zeros).sum(axis=tuple(range(1, array.ndim)))
    return call.constant(sums.astype(np.int32).reshape(shape))


def _pad_at_run_time(call: Call, images: str, pad: tuple[int, int, int, int], zero: str) -> str:
    """Images within a border of a number that is known at run time only. Parts that are copied side
    by side are faster than a choice for each pixel."""
    number = call.reshape(zero, ()) if any(pad) else zero
    for axis, before, after in ((2, *pad[:2]), (3, *pad[2:])):
        shape = call.type_of(images).shape
        parts = [call.add(Expand(x=number, shape=(*shape[:axis], width, *shape[axis + 1:])))
                 if width else "" for width in (before, after)]
        if any(parts):
            images = call.add(Concat(parts=tuple(filter(None, (parts[0], images, parts[1]))),
                                     axis=axis))
    return images


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize(call: Call) -> None:
    stored, scale, zero = _quantize_dynamically(call, call.plain_operand(0))
    call.give(stored)
    call.give_existing(scale, 1)
    call.give(zero, 2)


def _quantize_dynamically(call: Call, x: str) -> tuple[Operation, str, Operation]:
    """Integers that stand for themselves, their scale, and their zero point, from the least and
    the largest number that there is. If all are 0, the scale is 1, as in ONNX Runtime."""
    axes = tuple(range(len(call.type_of(x).shape)))
    nothing = call.scalar(0, "float32")
    low, high = (call.add(Binary(kind=kind, right=nothing, left=call.add(
        Reduce(kind=of, x=x, axes=axes)))) for kind, of in (
            (BinaryKind.MIN, ReduceKind.MIN), (BinaryKind.MAX, ReduceKind.MAX)))
    span = call.add(_difference(high, low))
    step = call.add(Binary(kind=BinaryKind.DIV, left=span, right=call.scalar(255, "float32")))
    flat = call.add(Compare(kind=CompareKind.EQUAL, left=span, right=nothing))
    scale = call.add(Where(condition=flat, left=call.scalar(1, "float32"), right=step))
    start = call.add(Unary(kind=UnaryKind.NEG, x=call.add(
        Binary(kind=BinaryKind.DIV, left=low, right=scale))))
    point = call.add(Unary(kind=UnaryKind.ROUND, x=call.add(Clamp(x=start, low=0, high=255))))
    ratio = call.add(Binary(kind=BinaryKind.DIV, left=x, right=scale))
    rounded = call.add(Unary(kind=UnaryKind.ROUND, x=ratio))
    whole = call.add(Binary(kind=BinaryKind.ADD, left=rounded, right=point))
    stored = call.add(Clamp(x=whole, low=0, high=255))
    return Cast(x=stored, dtype="uint8"), scale, Cast(x=point, dtype="uint8")
