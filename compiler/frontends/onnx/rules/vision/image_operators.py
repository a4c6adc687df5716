"""Operators on images other than windows: samples, blocks of columns, and boxes."""

from __future__ import annotations

from math import prod

import numpy as np

from .....graph.operations.data_movement.indexing import Expand
from .....graph.operations.data_movement.scatter import ScatterElements, ScatterKind, ScatterNd
from .....graph.operations.data_movement.shape import Pad, Transpose
from .....graph.operations.vision.resize import ResizeKind
from .....graph.operations.vision.sampling import GridSample, Outside
from .....graph.operations.vision.suppression import NonMaxSuppression
from .....graph.types import GraphError, Shape
from ...call import Call
from ...operator_table import operator
from ...reader import LARGEST_FOLDED
from ..data_movement import build_slice

SAMPLES = {"linear": ResizeKind.LINEAR, "bilinear": ResizeKind.LINEAR,
           "nearest": ResizeKind.NEAREST, "cubic": ResizeKind.CUBIC, "bicubic": ResizeKind.CUBIC}


@operator("GridSample", "align_corners mode padding_mode", since=16)
def grid_sample(call: Call) -> None:
    mode = SAMPLES[call.text("mode", "linear", " ".join(SAMPLES))]
    outside = Outside(call.text("padding_mode", "zeros", "zeros border reflection"))
    call.give(GridSample(x=call.plain_operand(0), grid=call.plain_operand(1), kind=mode,
                         outside=outside, align_corners=call.flag("align_corners")))


@operator("Col2Im", "dilations pads strides", since=18)
def columns_to_image(call: Call) -> None:
    """Every number is added to the pixel that it was copied from."""
    shape = call.type(0).shape
    if len(shape) != 3:
        raise GraphError(f"the input has shape {shape}, but must have 3 axes")
    n, rows, count = shape
    image, block = call.integers(1, "the image's shape"), call.integers(2, "the block's shape")
    axes = len(image)
    strides, dilations = (call.list(name) or (1,) * axes for name in ("strides", "dilations"))
    pads = call.list("pads") or (0,) * 2 * axes
    if not 0 < axes == len(block) == len(strides) == len(dilations) == len(pads) // 2 or (
            min(*image, *block, *strides, *dilations) < 1 or min(pads) < 0 or rows % prod(block)):
        raise GraphError(f"blocks of {block} with strides {strides}, dilations {dilations} and "
                         f"pads {pads} do not fit an image of {image} and {rows} rows")
    padded = tuple(size + before + after for size, before, after
                   in zip(image, pads[:axes], pads[axes:], strict=True))
    places = _places(padded, block, strides, dilations)
    if places.shape[1] != count:
        raise GraphError(f"there are {count} blocks, but an image of {image} has "
                         f"{places.shape[1]}")
    channels = rows // prod(block)
    parts = call.reshape(call.plain_operand(0), (n * channels, prod(block) * count))
    updates = call.add(Transpose(x=parts, order=(1, 0)))
    zeros = call.add(Expand(x=call.scalar(0, call.type(0).dtype),
                            shape=(prod(padded), n * channels)))
    total = call.add(ScatterNd(x=zeros, indices=call.constant(places.reshape(-1, 1)),
                               updates=updates, kind=ScatterKind.ADD))
    whole = call.reshape(call.add(Transpose(x=total, order=(1, 0))), (n, channels, *padded))
    call.give(build_slice(whole, (n, channels, *padded), {
        axis + 2: (pads[axis], pads[axis] + size, 1) for axis, size in enumerate(image)}))


def _places(image: Shape, block: Shape, strides: Shape, dilations: Shape) -> np.ndarray:
    """The pixel of each tap (in order) of each block (in order)."""
    if prod(block) * prod(image) > LARGEST_FOLDED:
        raise GraphError(f"blocks of {block} in an image of {image} are more than {LARGEST_FOLDED} "
                         f"numbers")
    total = np.zeros((1, 1), np.int64)
    for size, taps, stride, apart in zip(image, block, strides, dilations, strict=True):
        starts = np.arange(0, size - (taps - 1) * apart, stride)
        along = np.arange(taps)[:, None] * apart + starts
        total = (total[:, None, :, None] * size + along[None, :, None, :]).reshape(
            total.shape[0] * taps, total.shape[1] * len(starts))
    return total


@operator("MaxUnpool", "kernel_shape pads strides", since=9)
def max_unpool(call: Call) -> None:
    x, shape = call.plain_operand(0), call.type(0).shape
    kernel, axes = call.list("kernel_shape") or (), len(shape) - 2
    strides, pads = call.list("strides") or (1,) * axes, call.list("pads") or (0,) * 2 * axes
    if not axes == len(kernel) == len(strides) == len(pads) // 2:
        raise GraphError(f"kernel_shape {kernel}, strides {strides} and pads {pads} do not fit "
                         f"{shape}")
    whole = (*shape[:2], *((size - 1) * stride + taps - before - after
                           for size, stride, taps, before, after in zip(
                               shape[2:], strides, kernel, pads[:axes], pads[axes:], strict=True)))
    if min(whole) < 0:
        raise GraphError(f"pads {pads} leave nothing of the image")
    size = call.type(0).size
    zeros = call.add(Expand(x=call.scalar(0, call.type(0).dtype), shape=(prod(whole),)))
    found = call.reshape(call.add(ScatterElements(
        x=zeros, indices=call.reshape(call.plain_operand(1), (size,)),
        updates=call.reshape(x, (size,)))), whole)
    wanted = call.integers(2, "output_shape") if call.has(2) else whole
    if len(wanted) != len(whole) or any(
            after < before for before, after in zip(whole, wanted, strict=True)):
        raise GraphError(f"output_shape is {wanted}, but must be at least {whole}")
    call.give(Pad(x=found, before=(0,) * len(whole), after=tuple(
        after - before for before, after in zip(whole, wanted, strict=True))))


@operator("NonMaxSuppression", "center_point_box", since=10)
def suppress(call: Call) -> None:
    """The result has as many rows as there may be, with −1 in those after the last."""
    given = call.integers(2, "max_output_boxes_per_class") if call.has(2) else (0,)
    if len(given) != 1:
        raise GraphError(f"max_output_boxes_per_class is {given}, but must be a single number")
    overlap = call.number(3, "iou_threshold") if call.has(3) else 0.0
    least = call.number(4, "score_threshold") if call.has(4) else None
    call.give(NonMaxSuppression(boxes=call.plain_operand(0), scores=call.plain_operand(1),
                                count=max(given[0], 0), overlap=overlap, least=least,
                                centred=call.flag("center_point_box")))
