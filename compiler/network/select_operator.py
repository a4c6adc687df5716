"""The operator that computes a node, or the reason why none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...base.checked_values import quote
from ...isa.config import Config
from ...isa.instructions import Rounding
from ..errors import CompileError
from ..graph.graph import Graph, Node
from ..graph.operation import Operation as GraphOperation
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.window import (
    Conv,
    Pool,
    PoolKind,
    TransposedConv,
    common_channel_axis,
)
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.quantize import Clamp, Lookup, Rescale
from ..graph.operations.vision.integer_upsample import Upsample
from ..graph.types import Shape
from ..operators.convolution.conv2d import MOST_PLANES, Conv2d
from ..operators.convolution.transposed import Transposed
from ..operators.depthwise.depthwise import Depthwise
from ..operators.depthwise.grouped import Grouped
from ..operators.depthwise.upsample import Upsample as UpsampleSpec
from ..operators.description import Description
from ..operators.elementwise.broadcast import Broadcast
from ..operators.elementwise.elementwise import Elementwise, Operation
from ..operators.elementwise.lanewise import Lanewise
from ..operators.pool.pool import Kind
from ..operators.pool.pool import Pool as PoolSpec
from .matmul_tasks import matmul_task
from .task import (
    RefusalError,
    Settings,
    Task,
    bounds_of,
    check_activation,
    check_constants,
    constant_of,
    epilogue_of,
    is_wide,
    parameters_of,
    planes_of,
    root,
    weights_of,
)
from .tile_layouts import IMAGE_AXES, cover_layout, image_axes, natural_layout

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

Maker = Callable[[Graph, Node, Any, Config], Task]


def task_of(graph: Graph, name: str, config: Config, channel_axis: int | None) -> Task:
    """The operator that computes a node, for tensors in layouts of its own. `channel_axis` is that
    of all images of the network. Raises CompileError."""
    node = graph.nodes[name]
    makers = MAKERS.get(type(node.operation), ())
    if not makers:
        raise RefusalError(REASONS.get(type(node.operation).__name__,
                                       "the accelerator has no operator for it"))
    if not is_wide(node):
        check_constants(graph, node)
        check_activation(node.type, "result")
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


def _image_axes_of(operation: Any) -> tuple[int, int, int, int]:
    """Where (image, channel, row, column) stand."""
    return image_axes(operation.channel_axis)


def _convolution_task(graph: Graph, node: Node, operation: Conv, config: Config) -> Task:
    x = graph.type_of(operation.x)
    check_activation(x, "input")
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
        _image_axes_of(operation))


def _transposed_conv_task(graph: Graph, node: Node, operation: TransposedConv,
                          config: Config) -> Task:
    x = graph.type_of(operation.x)
    check_activation(x, "input")
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
        rounding=operation.rounding, **bounds_of(operation, node.type))
    return Task(spec, {"data": operation.x}, {
        "weights": np.ascontiguousarray(weights.transpose(1, 0, 2, 3)),
        **parameters_of(graph, operation.bias, operation.scales, len(weights))},
        _image_axes_of(operation))


def _upsample_task(graph: Graph, node: Node, operation: Upsample, config: Config) -> Task:
    x = graph.type_of(operation.x)
    check_activation(x, "input")
    images, height, width, channels = operation.image(x)
    zeros = (0, 0) if operation.raw else (x.require_quantization().zero_point,
                                          node.type.require_quantization().zero_point)
    spec = UpsampleSpec(height=height, width=width, channels=channels, images=images,
                        factors=operation.factors, centred=operation.centred,
                        zero_point_in=zeros[0], zero_point_out=zeros[1],
                        rounding=operation.rounding, **bounds_of(operation, node.type))
    return Task(spec, {"data": operation.x}, parameters_of(graph, None, operation.scales, channels),
                _image_axes_of(operation))


def _pool_task(graph: Graph, node: Node, operation: Pool, config: Config) -> Task:
    x = graph.type_of(operation.x)
    check_activation(x, "input")
    images, height, width, channels = operation.image(x)
    fields: Settings = {
        "height": height, "width": width, "images": images, "channels": channels,
        "kernel": operation.kernel, "stride": operation.stride, "dilation": operation.dilation,
        "pad": operation.pad, **bounds_of(operation, node.type)}
    if operation.kind == PoolKind.MAX:
        spec = PoolSpec(kind=Kind.MAX, **fields)
    else:
        zeros = (0, 0) if operation.raw else (x.require_quantization().zero_point,
                                              node.type.require_quantization().zero_point)
        spec = PoolSpec(kind=Kind.AVERAGE, zero_point_in=zeros[0], zero_point_out=zeros[1],
                        count_include_pad=operation.count_include_pad,
                        scale_in=operation.scales[0] if operation.scales else 1.0,
                        rounding=operation.rounding, **fields)
    return Task(spec, {"data": operation.x}, {}, _image_axes_of(operation))


def _elementwise_task(graph: Graph, node: Node, operation: Binary, config: Config) -> Task:
    for side, which in ((operation.left, "left side"), (operation.right, "right side")):
        type_ = graph.type_of(side)
        check_activation(type_, which)
        if type_.shape != node.type.shape:
            raise RefusalError(f"the {which} is repeated to meet the other")
        if side in graph.constants:
            raise RefusalError("one side is constant")
    spec = Elementwise(
        channels=node.type.shape[-1] if node.type.shape else 1,
        **_pairwise_settings(graph, node, operation, operation.left, operation.right))
    return Task(spec, {"left": operation.left, "right": operation.right})


def _pairwise_settings(graph: Graph, node: Node, operation: Binary, left: str,
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
            **bounds_of(operation, node.type)}


def _broadcast_task(graph: Graph, node: Node, operation: Binary, config: Config) -> Task:
    """An image and one number for each channel, which may be constant, on either side."""
    left, right = operation.left, operation.right
    if graph.type_of(left).shape != node.type.shape and operation.kind != BinaryKind.SUB:
        left, right = right, left
    image, other = graph.type_of(left), graph.type_of(right)
    for type_, which in ((image, "left side"), (other, "right side")):
        check_activation(type_, which)
    shape = (1,) * (len(image.shape) - len(other.shape)) + other.shape
    if image.shape != node.type.shape or len(shape) != len(IMAGE_AXES) or left in graph.constants:
        raise RefusalError("no side is an image that the other is repeated to meet")
    axis = _find_channel_axis(graph, image.shape, shape, constant=right in graph.constants)
    axes = image_axes(axis)
    images, channels, height, width = (image.shape[each] for each in axes)
    spec = Broadcast(channels=channels, height=height, width=width, images=images,
                     **_pairwise_settings(graph, node, operation, left, right))
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


def _rescale_task(graph: Graph, node: Node, operation: Rescale | Clamp, config: Config) -> Task:
    """A clamp is a rescale by one."""
    before, after = graph.type_of(operation.x), node.type
    check_activation(before, "input")
    rounding = operation.rounding if isinstance(operation, Rescale) else Rounding.TWICE
    spec = Elementwise(operation=Operation.RESCALE, channels=1,
                       scale_left=before.require_quantization().scale,
                       scale_out=after.require_quantization().scale,
                       zero_point_left=before.require_quantization().zero_point,
                       zero_point_out=after.require_quantization().zero_point, rounding=rounding,
                       **bounds_of(operation, after))
    return Task(spec, {"left": operation.x})


def _lookup_task(graph: Graph, node: Node, operation: Lookup, config: Config) -> Task:
    """A table alone is one after a rescale that changes nothing."""
    if not config.tables:
        raise RefusalError("no table of values in the ALU")
    check_activation(graph.type_of(operation.x), "input")
    table = constant_of(graph, operation.table, "tables")
    spec = Elementwise(operation=Operation.RESCALE, channels=1, lookup=tuple(table.tolist()))
    return Task(spec, {"left": operation.x})


# In the order in which they are asked.
MAKERS: dict[type[GraphOperation], tuple[Maker, ...]] = {
    Conv: (_convolution_task,),
    TransposedConv: (_transposed_conv_task,),
    Upsample: (_upsample_task,),
    Pool: (_pool_task,),
    MatMul: (matmul_task,),
    Binary: (_elementwise_task, _broadcast_task),
    Rescale: (_rescale_task,),
    Clamp: (_rescale_task,),
    Lookup: (_lookup_task,),
}
