"""How convolutions, pools, matrix products and conversions to integers are written as ONNX."""

from __future__ import annotations

import numpy as np

from ...base.errors import MicrotronError
from ...compiler.graph.operations.layers.matmul import MatMul
from ...compiler.graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from ...compiler.graph.operations.layers.window_places import MaxPlace
from ...compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from ...compiler.graph.types import Array, Quantization
from .float_rules import as_integers
from .writer import Attributes, Writer, rule

Window = Conv | TransposedConv | Pool | MaxPlace


def place_of(writer: Writer, name: str, operation: Window) -> Attributes:
    """Where a window lies, in ONNX's attributes."""
    if operation.channel_axis != 1:
        raise MicrotronError(f"{name}: images with channels last cannot be written as ONNX")
    top, bottom, left, right = operation.pad
    found = {"strides": operation.stride, "pads": (top, left, bottom, right)}
    if operation.dilation != (1, 1):
        found["dilations"] = operation.dilation
    return found


@rule(Conv)
def conv(writer: Writer, name: str, operation: Conv) -> None:
    writer.node("Conv", list(operation.operands()), name, group=operation.groups,
                kernel_shape=writer.type_of(operation.weights).shape[2:],
                **place_of(writer, name, operation))


@rule(TransposedConv)
def transposed_conv(writer: Writer, name: str, operation: TransposedConv) -> None:
    weights = writer.type_of(operation.weights)
    known = by_input(writer, operation.weights, operation.groups)
    writer.node("ConvTranspose", [operation.x, known, *operation.operands()[2:]], name,
                group=operation.groups, kernel_shape=weights.shape[2:],
                output_padding=operation.output_padding, **place_of(writer, name, operation))


def by_input(writer: Writer, name: str, groups: int) -> str:
    """Weights of a transposed convolution as ONNX has them: (input, output of its group, y, x)."""
    def swap_channels(array: Array) -> Array:
        outputs, depth, *taps = array.shape
        parts = array.reshape(groups, outputs // groups, depth, *taps).swapaxes(1, 2)
        return parts.reshape(groups * depth, outputs // groups, *taps)

    real = writer.graph.array(name)
    if real is not None:
        return writer.constant(swap_channels(real), name=f"{name}.by_input")
    node = writer.graph.nodes[name]
    assert isinstance(node.operation, Dequantize)
    stored = writer.graph.constants[node.operation.x]
    known = stored.type.require_quantization()
    if len(known.scales) > 1 and groups > 1:
        raise MicrotronError(f"{name}: a transposed convolution in groups needs one scale")
    integers = writer.constant(swap_channels(stored.array), name=f"{name}.by_input.stored")
    return dequantize_linear(writer, integers, known, stored.type.dtype,
                             None if len(known.scales) == 1 else 1)


@rule(Pool)
def pool(writer: Writer, name: str, operation: Pool) -> None:
    more: Attributes = {}
    if operation.kind == PoolKind.AVERAGE:
        more["count_include_pad"] = int(operation.count_include_pad)
    kind = "MaxPool" if operation.kind == PoolKind.MAX else "AveragePool"
    writer.node(kind, [operation.x], name, kernel_shape=operation.kernel, **more,
                **place_of(writer, name, operation))


@rule(MaxPlace)
def max_place(writer: Writer, name: str, operation: MaxPlace) -> None:
    if writer.type_of(operation.x).shape[:2] != (1, 1):     # ONNX counts through all images
        raise MicrotronError(f"{name}: places of maxima cannot be written as ONNX")
    _, places = writer.node_of_several(
        "MaxPool", [operation.x], [writer.fresh("largest"), writer.fresh("places")],
        kernel_shape=operation.kernel, storage_order=int(operation.by_column),
        **place_of(writer, name, operation))
    as_integers(writer, name, places)


@rule(MatMul)
def matmul(writer: Writer, name: str, operation: MatMul) -> None:
    left, right = operation.left, operation.right
    if operation.bias is None:
        writer.node("MatMul", [left, right], name)
    elif len(writer.type_of(left).shape) == len(writer.type_of(right).shape) == 2:
        writer.node("Gemm", [left, right, operation.bias], name)
    else:
        writer.node("Add", [writer.node("MatMul", [left, right]), operation.bias], name)


@rule(Quantize)
def quantize(writer: Writer, name: str, operation: Quantize) -> None:
    type_ = writer.type_of(name)
    writer.node("QuantizeLinear",
                [operation.x, *scale_and_zero(writer, type_.require_quantization(),
                                                                type_.dtype)], name)


@rule(Dequantize)
def dequantize(writer: Writer, name: str, operation: Dequantize) -> None:
    readers = [writer.graph.nodes[each].operation for each in writer.graph.readers.get(name, ())]
    if readers and all(isinstance(each, TransposedConv) and each.weights == name
                       for each in readers):
        return                              # written with the layer, in another order
    type_ = writer.type_of(operation.x)
    known = type_.require_quantization()
    dequantize_linear(writer, operation.x, known, type_.dtype,
                      None if len(known.scales) == 1 else known.axis, name)


def dequantize_linear(writer: Writer, stored: str, known: Quantization, dtype: str,
                      axis: int | None, name: str | None = None) -> str:
    attributes = {} if axis is None else {"axis": axis}
    return writer.node("DequantizeLinear", [stored, *scale_and_zero(writer, known, dtype)], name,
                       **attributes)


def scale_and_zero(writer: Writer, known: Quantization, dtype: str) -> list[str]:
    scales, zeros = np.array(known.scales, np.float32), np.array(known.zero_points, dtype)
    if len(scales) == 1:
        scales, zeros = scales[0], zeros[0]
    return [writer.constant(scales, name="scale"), writer.constant(zeros, name="zero_point")]
