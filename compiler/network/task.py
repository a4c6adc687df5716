"""Nodes as the accelerator would compute them: the operator that fits, or why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...base.checked_values import quote
from ...isa.arithmetic import quantize_scale
from ...isa.config import Config
from ...isa.instructions import Rounding
from ..errors import CompileError
from ..graph.graph import Graph, Node
from ..graph.operation import Operation as GraphOperation
from ..graph.operations.data_movement.shape import Reshape
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.window import (
    Conv,
    Pool,
    PoolKind,
    TransposedConv,
    common_channel_axis,
)
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.quantize import Clamp, Dequantize, Lookup, Rescale
from ..graph.operations.scaled import SUMS, Clamped, Scaled
from ..graph.types import Array, Shape, TensorType
from ..operators.convolution.conv2d import MOST_PLANES, Conv2d
from ..operators.convolution.transposed import Transposed
from ..operators.dense.dense import Dense
from ..operators.depthwise.depthwise import Depthwise
from ..operators.depthwise.grouped import Grouped
from ..operators.description import Description
from ..operators.elementwise.broadcast import Broadcast
from ..operators.elementwise.elementwise import Elementwise, Operation
from ..operators.elementwise.lanewise import Lanewise
from ..operators.pool.pool import Kind
from ..operators.pool.pool import Pool as PoolSpec
from .tile_layouts import IMAGE_AXES, cover_layout, image_axes, natural_layout

INT8 = (-128, 127)


class RefusalError(CompileError):
    """Why the accelerator does not take a node, in words that a user can act on."""


@dataclass(frozen=True)
class Task:
    """An operator with what it reads: activations by operand, and constants. The axes of its
    operands and of its result stand in tensors in another order if `axes` says so. Tensors are
    those that are computed, before any reshape: `shapes` says how they are seen."""

    spec: Description
    reads: Mapping[str, str]                        # operand → tensor
    constants: Mapping[str, Array] = field(default_factory=dict)
    axes: tuple[int, ...] | None = None             # of (image, channel, row, column)
    shapes: Mapping[str, Shape] = field(default_factory=dict)       # by operand


def task_of(graph: Graph, name: str, config: Config, channel_axis: int | None) -> Task:
    """The operator that computes a node, for tensors in layouts of its own. `channel_axis` is that
    of all images of the network. Raises CompileError."""
    node = graph.nodes[name]
    makers = MAKERS.get(type(node.operation), ())
    if not makers:
        raise RefusalError(REASONS.get(type(node.operation).__name__,
                                  "the accelerator has no operator for it"))
    if not is_wide(node):
        _check_constants(graph, node)
        _check_activation(node.type, "result")
    task = _first_task(makers, graph, node, config)
    reads = {operand: root(graph, tensor) for operand, tensor in task.reads.items()}
    spec = task.spec
    if isinstance(spec, Lanewise):
        shape = graph.type_of(next(iter(reads.values()))).shape
        spec = cover_layout(spec, natural_layout(shape, config, channel_axis), config)
    return replace(task, spec=spec, reads=reads, shapes={
        operand: graph.type_of(tensor).shape for operand, tensor in task.reads.items()})


def _first_task(makers: Sequence[Maker], graph: Graph, node: Node, config: Config) -> Task:
    """The task of the first maker that takes a node; the refusal is that of the last."""
    for maker in makers[:-1]:
        with suppress(CompileError):
            return maker(graph, node, node.operation, config)
    try:
        return makers[-1](graph, node, node.operation, config)
    except RefusalError:
        raise
    except CompileError as error:
        raise RefusalError(str(error)) from None


def register_task(operation: type[GraphOperation], maker: Maker) -> None:
    """Have `maker` say how nodes of an operation are computed, before anyone else is asked. What
    it refuses with a RefusalError is left to those that were registered before it. Its operator
    must be known to the catalogue when a network is compiled."""
    if not (isinstance(operation, type) and issubclass(operation, GraphOperation)):
        raise CompileError(f"{quote(operation)} is no operation of graphs; give a class such as "
                           f"{Binary.__name__}")
    MAKERS[operation] = (maker, *MAKERS.get(operation, ()))


# What the accelerator lacks, for operations that networks often have.
REASONS = {
    "Softmax": "no exponential in the ALU",
    "LogSoftmax": "no exponential in the ALU",
    "FixedPointSoftmax": "no exponential in the ALU",
    "Unary": "no such function in the ALU",
    "Quantize": "real arithmetic runs on the CPU",
    "Dequantize": "real arithmetic runs on the CPU",
    "LayerNorm": "real arithmetic runs on the CPU",
    "Transpose": "moves data from lane to lane, which no engine does",
    "Gather": "addresses that depend on data",
    "Resize": "the accelerator has no operator for it",
}


def root(graph: Graph, tensor: str) -> str:
    """The tensor whose numbers, in the same order, another one has in a different shape."""
    while tensor in graph.nodes and isinstance(graph.nodes[tensor].operation, Reshape):
        tensor, = graph.nodes[tensor].operation.operands()
    return tensor


Settings: TypeAlias = dict[str, Any]        # fields of a description
Maker = Callable[[Graph, Node, Any, Config], Task]


def _check_constants(graph: Graph, node: Node) -> None:
    """Refuse real arithmetic on a quantized tensor that constants keep real: passes round none."""
    operation, reads = node.operation, [graph.nodes.get(each) for each in node.operation.operands()]
    if not node.type.is_float or not any(
            each is not None and isinstance(each.operation, Dequantize) for each in reads):
        return
    if isinstance(operation, Binary) and {operation.left, operation.right} & set(graph.constants):
        raise RefusalError("one side is a real constant, which keeps its precision")
    if isinstance(operation, Conv | TransposedConv | MatMul) and operation.bias in graph.constants:
        raise RefusalError("its weights are real, or its bias is too fine for the scale of its "
                           "products")


def _check_activation(type_: TensorType, which: str) -> None:
    """Refuse what is not int8 with one scale."""
    if type_.is_float:
        raise RefusalError("real numbers; quantize the model")
    if type_.dtype != "int8":
        raise RefusalError(f"the {which} is {type_.dtype}, but activations have int8")
    if type_.quantization is None or len(type_.quantization.scales) != 1:
        raise RefusalError(f"the {which} has not one scale and zero point")
    if not type_.size:
        raise RefusalError(f"the {which} is empty")


def activation_type(graph: Graph, tensor: str, which: str) -> TensorType:
    """The type of an activation that a node reads, `which` in messages. Raises RefusalError if it
    is none that the accelerator can read, or a constant."""
    type_ = graph.type_of(tensor)
    _check_activation(type_, which)
    if tensor in graph.constants:
        raise RefusalError(f"the {which} is constant")
    return type_


def epilogue_of(node: Node) -> Settings:
    """Zero point, bounds and rounding of a node's result, as an `Epilogue` has them; or that it is
    wide."""
    operation = node.operation
    assert isinstance(operation, Scaled), "others do not scale their results"
    if not is_wide(node):
        return {"zero_point_out": node.type.require_quantization().zero_point,
                "rounding": operation.rounding, **_bounds(operation, node.type)}
    if operation.low is not None or operation.high is not None:
        raise RefusalError("bounds of results that are not scaled back to 8 bits")
    return {"wide": True}


def is_wide(node: Node) -> bool:
    """Whether a node's result are its sums of products, in 32 bits and not scaled back."""
    return isinstance(node.operation, Conv | MatMul) and not node.operation.scales and (
        node.type.dtype == SUMS)


def constant_of(graph: Graph, tensor: str, which: str) -> Array:
    """The numbers of a constant. Raises RefusalError if they are computed, `which` in messages."""
    array = graph.array(tensor)
    if array is None:
        raise RefusalError(f"{which} that are computed at run time")
    return array


def _bounds(operation: Clamped, result: TensorType) -> Settings:
    low, high = operation.bounds(result)
    return {"low": int(low), "high": int(high)}     # type: ignore[arg-type]  # integers have bounds


def parameters_of(graph: Graph, bias: str | None, scales: tuple[float, ...],
                  channels: int) -> dict[str, Array]:
    """Bias, multiplier and shift of each channel. Wide results are not scaled."""
    values = (np.zeros(channels, np.int32) if bias is None
              else constant_of(graph, bias, "biases"))
    if values.dtype.kind != "i" or np.abs(values.astype(np.int64)).max(initial=0) >= 1 << 31:
        raise RefusalError(f"the bias is {values.dtype}, but must fit 32 bits")
    pairs = np.array([quantize_scale(scale) for scale in scales] or [(1, 0)], np.int64)
    pairs = np.broadcast_to(pairs, (channels, 2))
    return {"bias": values.astype(np.int32), "multiplier": pairs[:, 0].copy(),
            "shift": pairs[:, 1].copy()}


def weights_of(graph: Graph, tensor: str, config: Config, most_planes: int = 1) -> Array:
    """Constant weights without their zero points, which may then have a bit more than weights of
    this configuration, if they may be the sum of several planes."""
    type_, array = graph.type_of(tensor), constant_of(graph, tensor, "weights")
    if type_.dtype not in ("int8", "uint8"):
        raise RefusalError(f"{type_.dtype} weights")
    values = array.astype(np.int32)
    if type_.quantization is not None:
        values = values - type_.quantization.along(type_.quantization.zero_points, array.ndim)
    if planes_of(values, config) > most_planes:
        advice = "; quantize them to 4 bits, or take wgt_bits = 8" if config.wgt_bits == 4 else ""
        raise RefusalError(f"weights from {values.min()} to {values.max()} without their zero "
                           f"point, but weights of this configuration have {config.wgt_bits} bits"
                           f"{advice}")
    return values.astype(np.int32 if most_planes > 1 else np.int8)


def planes_of(weights: Array, config: Config) -> int:
    """As the sum of how many numbers of a weight's bits all weights can be written."""
    limit = 1 << config.wgt_bits - 1
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    return max(1, -(low // limit), -(-high // (limit - 1)))


def _axes(operation: Any) -> tuple[int, int, int, int]:
    """Where (image, channel, row, column) stand."""
    return image_axes(operation.channel_axis)


def _convolution(graph: Graph, node: Node, operation: Conv, config: Config) -> Task:
    x = graph.type_of(operation.x)
    _check_activation(x, "input")
    images, height, width, channels = operation.image(x)
    split = operation.groups in (1, channels)
    weights = weights_of(graph, operation.weights, config, MOST_PLANES if split else 1)
    outputs = len(weights)
    fields: Settings = {
        "height": height, "width": width, "images": images, "channels_in": channels,
        "channels_out": outputs, "kernel": weights.shape[2:], "stride": operation.stride,
        "dilation": operation.dilation, "pad": operation.pad, "planes": planes_of(weights, config),
        "zero_point_in": x.require_quantization().zero_point, **epilogue_of(node)}
    if operation.groups == 1:
        spec: Description = Conv2d(**fields)
    elif operation.groups == channels:
        spec = Depthwise(**fields)
    else:
        spec = Grouped(**fields, groups=operation.groups)
    return Task(spec, {"data": operation.x}, {
        "weights": weights, **parameters_of(graph, operation.bias, operation.scales, outputs)},
        _axes(operation))


def _transposed_conv_task(graph: Graph, node: Node, operation: TransposedConv,
                          config: Config) -> Task:
    x = graph.type_of(operation.x)
    _check_activation(x, "input")
    if operation.groups != 1:
        raise RefusalError("a transposed convolution in groups")
    images, height, width, channels = operation.image(x)
    weights = weights_of(graph, operation.weights, config)
    spec = Transposed(
        height=height, width=width, images=images, channels_in=channels,
        channels_out=len(weights), kernel=weights.shape[2:], stride=operation.stride,
        dilation=operation.dilation, pad=operation.pad, output_padding=operation.output_padding,
        zero_point_in=x.require_quantization().zero_point,
        zero_point_out=node.type.require_quantization().zero_point,
        rounding=operation.rounding, **_bounds(operation, node.type))
    return Task(spec, {"data": operation.x}, {
        "weights": np.ascontiguousarray(weights.transpose(1, 0, 2, 3)),
        **parameters_of(graph, operation.bias, operation.scales, len(weights))}, _axes(operation))


def _pool(graph: Graph, node: Node, operation: Pool, config: Config) -> Task:
    x = graph.type_of(operation.x)
    _check_activation(x, "input")
    images, height, width, channels = operation.image(x)
    fields: Settings = {
        "height": height, "width": width, "images": images, "channels": channels,
        "kernel": operation.kernel, "stride": operation.stride, "dilation": operation.dilation,
        "pad": operation.pad, **_bounds(operation, node.type)}
    if operation.kind == PoolKind.MAX:
        spec = PoolSpec(kind=Kind.MAX, **fields)
    else:
        zeros = (0, 0) if operation.raw else (x.require_quantization().zero_point,
                                              node.type.require_quantization().zero_point)
        spec = PoolSpec(kind=Kind.AVERAGE, zero_point_in=zeros[0], zero_point_out=zeros[1],
                        count_include_pad=operation.count_include_pad,
                        scale_in=operation.scales[0] if operation.scales else 1.0,
                        rounding=operation.rounding, **fields)
    return Task(spec, {"data": operation.x}, {}, _axes(operation))


def _matrix(graph: Graph, node: Node, operation: MatMul, config: Config) -> Task:
    left, right = graph.type_of(operation.left), graph.type_of(operation.right)
    _check_activation(left, "left side")
    if len(right.shape) != 2:
        raise RefusalError("matrices of weights that differ from one product to the next")
    weights = np.ascontiguousarray(weights_of(graph, operation.right, config).T)
    outputs, inputs = weights.shape
    spec = Dense(rows=prod(left.shape[:-1]), inputs=inputs, outputs=outputs,
                 zero_point_in=left.require_quantization().zero_point, **epilogue_of(node))
    return Task(spec, {"data": operation.left}, {
        "weights": weights, **parameters_of(graph, operation.bias, operation.scales, outputs)})


def _binary(graph: Graph, node: Node, operation: Binary, config: Config) -> Task:
    for side, which in ((operation.left, "left side"), (operation.right, "right side")):
        type_ = graph.type_of(side)
        _check_activation(type_, which)
        if type_.shape != node.type.shape:
            raise RefusalError(f"the {which} is repeated to meet the other")
        if side in graph.constants:
            raise RefusalError("one side is constant")
    spec = Elementwise(channels=node.type.shape[-1] if node.type.shape else 1,
                       **_pairwise(graph, node, operation, operation.left, operation.right))
    return Task(spec, {"left": operation.left, "right": operation.right})


def _pairwise(graph: Graph, node: Node, operation: Binary, left: str,
              right: str) -> Settings:
    """What descriptions of operations of two numbers have in common."""
    one, other = (graph.type_of(each).require_quantization() for each in (left, right))
    scales: Settings = (
        {"scale_left": operation.scales[0]} if operation.kind == BinaryKind.MUL else
        {"scale_left": one.scale, "scale_right": other.scale,
         "scale_out": node.type.require_quantization().scale})
    return {"operation": Operation(operation.kind.value), "zero_point_left": one.zero_point,
            "zero_point_right": other.zero_point, "rounding": operation.rounding,
            "zero_point_out": node.type.require_quantization().zero_point, **scales,
            **_bounds(operation, node.type)}


def _broadcast(graph: Graph, node: Node, operation: Binary, config: Config) -> Task:
    """An image and one number for each channel, which may be constant, on either side."""
    left, right = operation.left, operation.right
    if graph.type_of(left).shape != node.type.shape and operation.kind != BinaryKind.SUB:
        left, right = right, left
    image, other = graph.type_of(left), graph.type_of(right)
    for type_, which in ((image, "left side"), (other, "right side")):
        _check_activation(type_, which)
    shape = (1,) * (len(image.shape) - len(other.shape)) + other.shape
    if image.shape != node.type.shape or len(shape) != len(IMAGE_AXES) or left in graph.constants:
        raise RefusalError("no side is an image that the other is repeated to meet")
    axis = _find_channel_axis(graph, image.shape, shape, constant=right in graph.constants)
    axes = image_axes(axis)
    images, channels, height, width = (image.shape[each] for each in axes)
    spec = Broadcast(channels=channels, height=height, width=width, images=images,
                     **_pairwise(graph, node, operation, left, right))
    if right not in graph.constants:
        return Task(spec, {"left": left, "right": right}, axes=axes)
    values = constant_of(graph, right, "numbers").reshape(shape).transpose(axes)
    return Task(spec, {"left": left}, {"right": np.ascontiguousarray(np.broadcast_to(
        values, (images, channels, 1, 1)))}, axes)


def _find_channel_axis(graph: Graph, image: Shape, other: Shape, *, constant: bool) -> int:
    """The axis of channels, of which another tensor has one number each, repeated for every pixel.
    A constant may have fewer: it is repeated beforehand."""
    if constant and prod(other) == 1:
        axis = common_channel_axis(node.operation for node in graph.nodes.values())
        if axis is not None:
            return axis
    for axis in (1, 3):
        least = tuple(1 if constant and each == 0 else size if each in (0, axis) else 1
                      for each, size in enumerate(image))
        if other == least or other == (image[0], *least[1:]):
            return axis
    raise RefusalError("the right side is repeated to meet the other, but not for every pixel")


def _rescale(graph: Graph, node: Node, operation: Rescale | Clamp, config: Config) -> Task:
    """A clamp is a rescale by one."""
    before, after = graph.type_of(operation.x), node.type
    _check_activation(before, "input")
    rounding = operation.rounding if isinstance(operation, Rescale) else Rounding.TWICE
    spec = Elementwise(operation=Operation.RESCALE, channels=1,
                       scale_left=before.require_quantization().scale,
                       scale_out=after.require_quantization().scale,
                       zero_point_left=before.require_quantization().zero_point,
                       zero_point_out=after.require_quantization().zero_point, rounding=rounding,
                       **_bounds(operation, after))
    return Task(spec, {"left": operation.x})


def _lookup(graph: Graph, node: Node, operation: Lookup, config: Config) -> Task:
    """A table alone is one after a rescale that changes nothing."""
    if not config.tables:
        raise RefusalError("no table of values in the ALU")
    _check_activation(graph.type_of(operation.x), "input")
    table = constant_of(graph, operation.table, "tables")
    spec = Elementwise(operation=Operation.RESCALE, channels=1, lookup=tuple(table.tolist()))
    return Task(spec, {"left": operation.x})


# In the order in which they are asked.
MAKERS: dict[type[GraphOperation], tuple[Maker, ...]] = {
    Conv: (_convolution,), TransposedConv: (_transposed_conv_task,), Pool: (_pool,),
    MatMul: (_matrix,), Binary: (_binary, _broadcast), Rescale: (_rescale,), Clamp: (_rescale,),
    Lookup: (_lookup,)}
