"""A network for several images at once, made of one that takes a single image.

Images follow one another along the first axis of every tensor that depends on them. An operation is
taken if it computes each image by itself, so that the result is that of the single images; others
are refused: a sum over all images, or a transpose that moves the first axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

from ...base.checked_values import integer, quote, show_name
from ...base.classes.dataclass import dataclass
from .graph import Graph, Node
from .operation import Operation, normalize_axes, normalize_axis
from .operations.data_movement.blocks import DepthToSpace, SpaceToDepth
from .operations.data_movement.shape import Concat, Pad, Reshape, Slice, Transpose
from .operations.layers.matmul import MatMul
from .operations.layers.normalization import BatchNorm, LayerNorm, LogSoftmax, Softmax
from .operations.layers.reduction import Arg, Reduce
from .operations.layers.window import Conv, Pool, TransposedConv
from .operations.pointwise.binary import Binary
from .operations.pointwise.logic import Compare, Logical, Not, Where
from .operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Reinterpret,
    Rescale,
)
from .operations.pointwise.unary import Cast, Unary
from .operations.tflite.eight_bit import (
    FixedPointPrelu,
    FixedPointReduce,
    FixedPointResize,
    FixedPointSquaredDifference,
)
from .operations.tflite.fixed_point import FixedPointSoftmax
from .operations.vision.integer_upsample import Upsample
from .operations.vision.resize import Resize
from .types import GraphError, Shape, TensorType
from .verify_graph import verify_graph

MOST_IMAGES = 1 << 12


def set_batch(graph: Graph, images: int) -> Graph:
    """The same network for `images` images at once. Each input must have a first axis of size 1,
    which becomes that many."""
    count = integer(images)
    if count is None or not 1 <= count <= MOST_IMAGES:
        raise GraphError(f"the batch is {quote(images)}, but must be from 1 to {MOST_IMAGES}")
    if count == 1:
        return graph
    if graph.states:
        raise GraphError("a network with states takes one input after the other; leave the batch "
                         "at 1")
    for name, type_ in graph.inputs.items():
        _check_edge("input", name, type_)
    inputs = {name: _repeat(type_, count) for name, type_ in graph.inputs.items()}
    nodes: dict[str, Node] = {}
    for name, node in graph.nodes.items():
        reads = {each: graph.type_of(each).shape for each in node.operation.operands()}
        by_image = {each: shape for each, shape in reads.items() if each in inputs or (
            each in nodes and nodes[each].type.shape != graph.type_of(each).shape)}
        nodes[name] = node
        if by_image:
            try:
                operation = _rewrite(node.operation, _Reads(reads, by_image, node.type.shape,
                                                            count))
                nodes[name] = replace(node, operation=operation, type=_repeat(node.type, count))
            except GraphError as error:
                raise GraphError(f"{graph.title(name)} ({node.operation.title()}) does not take a "
                                 f"batch: {error}") from None
    for name in graph.outputs:
        _check_edge("output", name, graph.type_of(name))
    found = replace(graph, inputs=inputs, nodes=nodes)
    verify_graph(found)
    return found


def _check_edge(kind: str, name: str, type_: TensorType) -> None:
    if type_.shape[:1] != (1,):
        raise GraphError(f"the {kind} {show_name(name)} has the shape {type_.shape}, but a batch "
                         f"takes the place of a first axis of size 1")


def _repeat(type_: TensorType, count: int) -> TensorType:
    """The type of a tensor with that many images."""
    quantization = type_.quantization
    if not type_.shape:
        raise GraphError("its result is a single number")
    if quantization is not None and quantization.axis == 0 and len(quantization.scales) > 1:
        raise GraphError("its scales differ along the first axis")
    return replace(type_, shape=(count * type_.shape[0], *type_.shape[1:]))


@dataclass(frozen=True)
class _Reads:
    """The shapes of what a node reads, and which of it has images, before there were several."""

    shapes: Mapping[str, Shape]
    by_image: Mapping[str, Shape]
    result: Shape
    count: int


@singledispatch
def _rewrite(operation: Operation, reads: _Reads) -> Operation:
    """The operation on several images. Each kind that can be is registered below."""
    raise GraphError("nothing is known about how it treats the first axis")


def _pointwise(operation: Operation, reads: _Reads) -> Operation:
    """What has no images is the same for all of them; what has, meets without being repeated."""
    for name, shape in reads.shapes.items():
        if name in reads.by_image:
            if len(shape) != len(reads.result) or shape[0] != reads.result[0]:
                raise GraphError(f"{show_name(name)} is repeated along the first axis")
        elif len(shape) == len(reads.result) and shape[0] != 1:
            raise GraphError(f"{show_name(name)} has numbers of its own along the first axis")
    return operation


def _image_by_image(operation: Operation, reads: _Reads) -> Operation:
    """Images along the first axis of what comes first; the rest are parameters."""
    first, *others = operation.operands()
    if first not in reads.by_image or any(each in reads.by_image for each in others):
        raise GraphError("its parameters depend on the input")
    return operation


@_rewrite.register
def _matmul(operation: MatMul, reads: _Reads) -> Operation:
    left, right = (reads.shapes[each] for each in (operation.left, operation.right))
    if operation.right not in reads.by_image:
        if len(right) > 2 and len(right) >= len(left) and right[0] != 1:
            raise GraphError("its matrices differ along the first axis")
        return _image_by_image(operation, reads)
    if operation.left not in reads.by_image or len(left) != len(right) or len(left) < 3 or (
            left[0] != right[0]) or operation.bias in reads.by_image:
        raise GraphError("both sides must have images along an axis before those of matrices")
    return operation


def _along_axis(operation: Operation, reads: _Reads) -> Operation:
    """Numbers along an axis, or several, depend on one another."""
    axes: tuple[int, ...] = (-1,)
    if isinstance(operation, Reduce | FixedPointReduce):
        axes = operation.axes
    elif isinstance(operation, BatchNorm):
        axes = (operation.channel_axis,)
    elif isinstance(operation, Softmax | LogSoftmax | LayerNorm | Arg):
        axes = (operation.axis,)
    if 0 in normalize_axes(axes, len(reads.shapes[operation.operands()[0]])):
        raise GraphError("it takes numbers along the first axis together")
    return _image_by_image(operation, reads)


@_rewrite.register
def _reshape(operation: Reshape, reads: _Reads) -> Operation:
    if not operation.shape:
        raise GraphError("its result is a single number")
    first, *others = operation.shape
    return replace(operation, shape=(reads.count * first, *others))


@_rewrite.register
def _transpose(operation: Transpose, reads: _Reads) -> Operation:
    if operation.order[0]:
        raise GraphError("it moves the first axis")
    return operation


@_rewrite.register
def _concat(operation: Concat, reads: _Reads) -> Operation:
    if not normalize_axis(operation.axis, len(reads.result)) or len(reads.by_image) < len(
            reads.shapes):
        raise GraphError("it joins tensors along the first axis, or with constants")
    return operation


@_rewrite.register
def _slice(operation: Slice, reads: _Reads) -> Operation:
    extent = reads.shapes[operation.x][0]
    if (operation.starts[0], operation.stops[0], operation.steps[0]) != (0, extent, 1):
        raise GraphError("it cuts the first axis")
    return replace(operation, stops=(reads.count * extent, *operation.stops[1:]))


@_rewrite.register
def _pad(operation: Pad, reads: _Reads) -> Operation:
    if operation.before[0] or operation.after[0]:
        raise GraphError("it adds to the first axis")
    return operation


@_rewrite.register
def _resize(operation: Resize, reads: _Reads) -> Operation:
    extent = reads.shapes[operation.x][0]
    if operation.shape[0] != extent or (operation.ratios and operation.ratios[0] != 1):
        raise GraphError("it resizes the first axis")
    return replace(operation, shape=(reads.count * extent, *operation.shape[1:]))


POINTWISE = (Binary, Compare, Logical, Not, Where, Quantize, Dequantize, Rescale, Reinterpret,
             Clamp, Lookup, Unary, Cast, FixedPointPrelu, FixedPointSquaredDifference)
WINDOWS = (Conv, TransposedConv, Pool, DepthToSpace, SpaceToDepth, FixedPointResize, Upsample)
ALONG_AXES = (Softmax, LogSoftmax, LayerNorm, BatchNorm, Reduce, FixedPointReduce, Arg,
              FixedPointSoftmax)
for _kinds, _rule in ((POINTWISE, _pointwise), (WINDOWS, _image_by_image),
                      (ALONG_AXES, _along_axis)):
    for _kind in _kinds:
        _rewrite.register(_kind, _rule)
