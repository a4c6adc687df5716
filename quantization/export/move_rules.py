"""How operations that move numbers are written as ONNX."""

from __future__ import annotations

from math import prod

from ...base.errors import MicrotronError
from ...compiler.graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthOrder,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from ...compiler.graph.operations.data_movement.indexing import (
    Expand,
    Gather,
    GatherElements,
    GatherNd,
    OneHot,
    Tile,
)
from ...compiler.graph.operations.data_movement.scatter import (
    ScatterElements,
    ScatterKind,
    ScatterNd,
)
from ...compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    PadMode,
    Reshape,
    Slice,
    Transpose,
)
from ...compiler.graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from ...compiler.graph.operations.vision.resize import Resize, ResizeKind
from ...compiler.graph.operations.vision.sampling import GridSample
from .float_rules import as_integers
from .writer import Attributes, Writer, rule

BEFORE_ALL = -(1 << 62)         # where a slice that goes backwards to the first number stops
PAD_MODES = {PadMode.CONSTANT: "constant", PadMode.REFLECT: "reflect", PadMode.EDGE: "edge",
             PadMode.WRAP: "wrap"}
GRID_KINDS = {ResizeKind.NEAREST: "nearest", ResizeKind.LINEAR: "linear",
              ResizeKind.CUBIC: "cubic"}


def refuse(name: str, what: str) -> MicrotronError:
    return MicrotronError(f"{name}: {what} cannot be written as ONNX; compile the model with its "
                          f"samples instead")


@rule(Reshape)
def reshape(writer: Writer, name: str, operation: Reshape) -> None:
    writer.node("Reshape", [operation.x, writer.integers(list(operation.shape))], name,
                allowzero=int(0 in operation.shape))


@rule(Transpose)
def transpose(writer: Writer, name: str, operation: Transpose) -> None:
    writer.node("Transpose", [operation.x], name, perm=operation.order)


@rule(Concat)
def concat(writer: Writer, name: str, operation: Concat) -> None:
    writer.node("Concat", list(operation.parts), name, axis=operation.axis)


@rule(Slice)
def slice_(writer: Writer, name: str, operation: Slice) -> None:
    stops = [BEFORE_ALL if stop < 0 else stop for stop in operation.stops]
    axes = list(range(len(operation.starts)))
    writer.node("Slice", [operation.x, *(writer.integers(each) for each in (
        list(operation.starts), stops, axes, list(operation.steps)))], name)


@rule(Pad)
def pad(writer: Writer, name: str, operation: Pad) -> None:
    if operation.mode not in PAD_MODES:
        raise refuse(name, f"a {operation.mode.value} border")
    operands = [operation.x, writer.integers([*operation.before, *operation.after])]
    if operation.mode == PadMode.CONSTANT and operation.value:
        operands.append(writer.scalar_like(operation.value, name))
    writer.node("Pad", operands, name, mode=PAD_MODES[operation.mode])


@rule(DepthToSpace)
def depth_to_space(writer: Writer, name: str, operation: DepthToSpace) -> None:
    if operation.channel_axis != 1:
        raise refuse(name, "an image with channels last")
    writer.node("DepthToSpace", [operation.x], name, blocksize=operation.block,
                mode=operation.order.value)


@rule(SpaceToDepth)
def space_to_depth(writer: Writer, name: str, operation: SpaceToDepth) -> None:
    if operation.channel_axis != 1:
        raise refuse(name, "an image with channels last")
    if operation.order == DepthOrder.BLOCK_FIRST:
        writer.node("SpaceToDepth", [operation.x], name, blocksize=operation.block)
        return
    n, channels, height, width = writer.type_of(operation.x).shape
    side = operation.block
    _blocks(writer, name, operation.x, (n, channels, height // side, side, width // side, side),
            (0, 1, 3, 5, 2, 4), writer.type_of(name).shape)


def _blocks(writer: Writer, name: str, x: str, split: tuple[int, ...], order: tuple[int, ...],
            shape: tuple[int, ...]) -> None:
    parts = writer.node("Reshape", [x, writer.integers(list(split))])
    turned = writer.node("Transpose", [parts], perm=order)
    writer.node("Reshape", [turned, writer.integers(list(shape))], name)


@rule(SpaceToBatch)
def space_to_batch(writer: Writer, name: str, operation: SpaceToBatch) -> None:
    shape, axes = writer.type_of(operation.x).shape, len(operation.block)
    rest = len(shape) - axes - 1
    widths = [0, *operation.before, *[0] * rest, 0, *operation.after, *[0] * rest]
    padded = writer.node("Pad", [operation.x, writer.integers(widths),
                                 writer.scalar_like(operation.value, name)])
    split = [shape[0]]
    for size, block, before, after in zip(shape[1:], operation.block, operation.before,
                                          operation.after, strict=False):
        split += [(size + before + after) // block, block]
    split += shape[axes + 1:]
    order = (*range(2, 2 * axes + 1, 2), 0, *range(1, 2 * axes + 1, 2),
             *range(2 * axes + 1, len(split)))
    _blocks(writer, name, padded, tuple(split), order, writer.type_of(name).shape)


@rule(BatchToSpace)
def batch_to_space(writer: Writer, name: str, operation: BatchToSpace) -> None:
    shape, axes = writer.type_of(operation.x).shape, len(operation.block)
    images = shape[0] // prod(operation.block)
    split = (*operation.block, images, *shape[1:])
    order = [axes]
    for each in range(axes):
        order += [axes + 1 + each, each]
    order += range(2 * axes + 1, len(split))
    sides = [size * block for size, block in zip(shape[1:], operation.block, strict=False)]
    whole = writer.fresh("whole")
    _blocks(writer, whole, operation.x, split, tuple(order), (images, *sides, *shape[axes + 1:]))
    stops = [size - after for size, after in zip(sides, operation.after, strict=True)]
    writer.node("Slice", [whole, writer.integers(list(operation.before)), writer.integers(stops),
                          writer.integers(list(range(1, axes + 1)))], name)


@rule(Resize)
def resize(writer: Writer, name: str, operation: Resize) -> None:
    attributes: Attributes = {
        "mode": operation.kind.value,
        "coordinate_transformation_mode": operation.coordinates.value}
    if operation.kind == ResizeKind.NEAREST:
        attributes["nearest_mode"] = operation.nearest.value
    if operation.kind == ResizeKind.CUBIC:
        attributes["cubic_coeff_a"] = operation.cubic
    if operation.ratios:
        scales = writer.constant(list(operation.ratios), "float32")
        writer.node("Resize", [operation.x, "", scales], name, **attributes)
    else:
        sizes = writer.integers(list(operation.shape))
        writer.node("Resize", [operation.x, "", "", sizes], name, **attributes)


@rule(Gather, GatherElements)
def gather(writer: Writer, name: str, operation: Gather | GatherElements) -> None:
    if isinstance(operation, Gather) and operation.batch:
        raise refuse(name, "a gather of batches")
    writer.node(type(operation).__name__, [operation.x, operation.indices], name,
                axis=operation.axis)


@rule(GatherNd)
def gather_nd(writer: Writer, name: str, operation: GatherNd) -> None:
    from onnx import TensorProto

    indices = writer.node("Cast", [operation.indices], to=TensorProto.INT64)
    writer.node("GatherND", [operation.x, indices], name, batch_dims=operation.batch)


@rule(Tile)
def tile(writer: Writer, name: str, operation: Tile) -> None:
    writer.node("Tile", [operation.x, writer.integers(list(operation.repeats))], name)


@rule(Expand)
def expand(writer: Writer, name: str, operation: Expand) -> None:
    writer.node("Expand", [operation.x, writer.integers(list(operation.shape))], name)


@rule(OneHot)
def one_hot(writer: Writer, name: str, operation: OneHot) -> None:
    values = writer.constant([operation.off, operation.on], writer.type_of(name).dtype)
    writer.node("OneHot", [operation.indices, writer.integers(operation.depth), values], name,
                axis=operation.axis)


@rule(Cumulative)
def cumulative(writer: Writer, name: str, operation: Cumulative) -> None:
    if operation.kind != CumulativeKind.SUM:
        raise refuse(name, "a running product")
    writer.node("CumSum", [operation.x, writer.integers(operation.axis)], name,
                exclusive=int(operation.exclusive), reverse=int(operation.reverse))


@rule(TopK)
def top_k(writer: Writer, name: str, operation: TopK) -> None:
    _, places = writer.node_of_several(
        "TopK", [operation.x, writer.integers([operation.count])],
        [writer.fresh("largest"), writer.fresh("places")], axis=operation.axis,
        largest=int(operation.largest), sorted=int(operation.sorted))
    as_integers(writer, name, places)


@rule(ScatterElements, ScatterNd)
def scatter(writer: Writer, name: str, operation: ScatterElements | ScatterNd) -> None:
    attributes: Attributes = {}
    if operation.kind != ScatterKind.REPLACE:
        attributes["reduction"] = operation.kind.value
    if isinstance(operation, ScatterElements):
        attributes["axis"] = operation.axis
    kind = "ScatterElements" if isinstance(operation, ScatterElements) else "ScatterND"
    writer.node(kind, [operation.x, operation.indices, operation.updates], name, **attributes)


@rule(GridSample)
def grid_sample(writer: Writer, name: str, operation: GridSample) -> None:
    writer.node("GridSample", [operation.x, operation.grid], name,
                mode=GRID_KINDS[operation.kind], padding_mode=operation.outside.value,
                align_corners=int(operation.align_corners))
