"""Images in another size, and blocks of pixels as channels or as images."""

from __future__ import annotations

import numpy as np

from ....graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from ....graph.operations.data_movement.indexing import Gather
from ....graph.operations.tflite.eight_bit import FixedPointResize
from ....graph.operations.vision.resize import Coordinates, Nearest, Resize, ResizeKind
from ....graph.types import Array, GraphError
from ..operator_node import Node, reads
from .rule_helpers import LONGEST_SIDE, image_sides
from .translate_shape import few


def sizes(node: Node) -> tuple[int, int]:
    """Rows and columns of the result."""
    height, width = few(node.integers(1, "the sizes"), 2, "rows and columns")
    image_sides(node)
    if min(height, width) < 1 or max(height, width) > LONGEST_SIDE or 0 in node.type(0).shape:
        raise GraphError(f"{node.type(0).shape} cannot become {height} × {width}; sides are from "
                         f"1 to {LONGEST_SIDE}")
    return height, width


def coordinates(node: Node) -> Coordinates:
    align, half = node.option("AlignCorners"), node.option("HalfPixelCenters")
    if align and half:
        raise GraphError("corners cannot be aligned with pixels whose centres are at a half")
    return (Coordinates.ALIGN_CORNERS if align else Coordinates.HALF_PIXEL if half
            else Coordinates.ASYMMETRIC)


@reads("RESIZE_BILINEAR", options="ResizeBilinearOptions", inputs=2)
def resize_bilinear(node: Node) -> None:
    """Of 8-bit numbers, in fixed point."""
    height, width = sizes(node)
    n, _, _, channels = node.type(0).shape
    if node.type(0).is_integer:
        node.add(FixedPointResize(x=node.input(0), sides=(height, width),
                                  coordinates=coordinates(node)))
        return
    node.add(Resize(x=node.input(0), shape=(n, height, width, channels), kind=ResizeKind.LINEAR,
                    coordinates=coordinates(node)))


@reads("RESIZE_NEAREST_NEIGHBOR", options="ResizeNearestNeighborOptions", inputs=2)
def resize_nearest(node: Node) -> None:
    """TFLite computes places in 32 bits; where exact ones are others, rows and columns are picked
    by number."""
    sides, (height, width) = image_sides(node), sizes(node)
    n, _, _, channels = node.type(0).shape
    where = coordinates(node)
    nearest = (Nearest.ROUND_PREFER_CEIL if where == Coordinates.ALIGN_CORNERS else Nearest.FLOOR)
    # Halves are added before scaling and not taken off again: the floor of (i + 1/2) × ratio.
    exact = Resize(x=node.input(0), shape=(n, height, width, channels), nearest=(
        Nearest.ROUND_PREFER_CEIL if where == Coordinates.HALF_PIXEL else nearest),
        coordinates=where)
    places = [places_of(before, after, where)
              for before, after in zip(sides, (height, width), strict=True)]
    if all(np.array_equal(found, np.clip(exact.nearest_pixels(exact.places(axis, before)), 0,
                                         before - 1))
           for axis, before, found in zip((1, 2), sides, places, strict=True)):
        node.add(exact)
        return
    rows, columns = (node.constant("places", each.astype(np.int32)) for each in places)
    picked = node.step("rows", Gather(x=node.input(0), indices=rows, axis=1))
    node.add(Gather(x=picked, indices=columns, axis=2))


def places_of(before: int, after: int, where: Coordinates) -> Array:
    """The pixel that TFLite takes for each of the result."""
    aligned = where == Coordinates.ALIGN_CORNERS and after > 1
    ratio = np.float32(before - aligned) / np.float32(after - aligned)
    offset = np.float32(0.5 if where == Coordinates.HALF_PIXEL else 0)
    scaled = (np.arange(after, dtype=np.float32) + offset) * ratio
    whole = np.floor(scaled + np.float32(0.5)) if where == Coordinates.ALIGN_CORNERS else (
        np.floor(scaled))
    return np.asarray(np.clip(whole, 0, before - 1).astype(np.int64))


@reads("SPACE_TO_DEPTH", options="SpaceToDepthOptions")
def space_to_depth(node: Node) -> None:
    node.add(SpaceToDepth(x=node.input(0), block=node.option("BlockSize")))


@reads("DEPTH_TO_SPACE", options="DepthToSpaceOptions")
def depth_to_space(node: Node) -> None:
    node.add(DepthToSpace(x=node.input(0), block=node.option("BlockSize")))


@reads("SPACE_TO_BATCH_ND", inputs=3)
def space_to_batch(node: Node) -> None:
    block, borders = node.integers(1, "the blocks"), node.integers(2, "the borders")
    few(borders, 2 * len(block), "borders")
    quantization = node.type(0).quantization
    node.add(SpaceToBatch(x=node.input(0), block=block, before=borders[::2], after=borders[1::2],
                          value=quantization.zero_point if quantization else 0))


@reads("BATCH_TO_SPACE_ND", inputs=3)
def batch_to_space(node: Node) -> None:
    block, borders = node.integers(1, "the blocks"), node.integers(2, "the borders")
    few(borders, 2 * len(block), "borders")
    node.add(BatchToSpace(x=node.input(0), block=block, before=borders[::2], after=borders[1::2]))
