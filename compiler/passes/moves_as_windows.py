"""Moves of whole channels and pixels, as windows that the accelerator has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..graph.graph import Graph, Node
from ..graph.operations.quantize import Rescale
from ..graph.operations.shape import Pad, PadMode, Slice
from ..graph.operations.window import Conv, Pair, Pool, PoolKind
from ..graph.types import Quantization, TensorType
from .rewrite import Edit

CHANNEL_AXES = (1, 3)
AXES = 4


def moves_as_windows(graph: Graph) -> Graph:
    """Take every second pixel, and add channels of zeros, with operators on images.

        y = Slice(x, steps=(1, 1, 2, 2))    becomes    y = Pool(x, kind=MAX, kernel=(1, 1),
                                                                stride=(2, 2))
        y = Pad(x, before=(0, 8, 0, 0))     becomes    y = Conv(x, w, scales=(1.0,)), where w has
                                                       a 1 for each channel that stays

    A shortcut of a residual network that is made of such moves then stays on the accelerator, in
    the same stream as the layers around it; as moves they are the CPU's. Both are exact: a maximum
    of one number is that number, and a sum of one product with 1 and many with 0, times 1, is what
    was multiplied. A slice before such a border is the stride of the convolution, and a change of
    scale after it is the convolution's. Only int8 becomes windows: the accelerator has no others.
    """
    edit = Edit(graph)
    for name, node in graph.nodes.items():
        match node.operation:
            case Slice() as cut:
                channels, stride = strided(cut, graph.type_of(cut.x), node.type)
                if stride == (1, 1):
                    edit.keep(name)
                else:
                    edit.put(name, Pool(x=cut.x, kind=PoolKind.MAX, kernel=(1, 1), stride=stride,
                                        channel_axis=channels), node.type, node.origin)
            case Pad() as pad:
                _widened(edit, name, node, pad)
            case Rescale(x=x) as rescale if graph.uses[x] == 1 and is_image(node.type):
                _rescaled(edit, name, node, rescale)
            case _:
                edit.keep(name)
    return edit.finished()


def is_image(type_: TensorType) -> bool:
    """Whether a tensor may be images that the accelerator has."""
    known = type_.quantization
    return len(type_.shape) == AXES and type_.dtype == "int8" and known is not None and (
        len(known.scales) == 1)


def strided(cut: Slice, x: TensorType, result: TensorType) -> tuple[int, Pair]:
    """The axis of channels and the stride of a slice that takes pixels at regular distances from
    the first on; (1, 1), if it is another one."""
    if is_image(x) and not any(cut.starts) and min(cut.steps) > 0:
        for channels in CHANNEL_AXES:
            rows, columns = (axis for axis in (1, 2, 3) if axis != channels)
            others = [axis for axis in range(AXES) if axis not in (rows, columns)]
            if all(result.shape[axis] == x.shape[axis] for axis in others) and all(
                    result.shape[axis] == (x.shape[axis] - 1) // cut.steps[axis] + 1
                    for axis in (rows, columns)):
                return channels, (cut.steps[rows], cut.steps[columns])
    return CHANNEL_AXES[0], (1, 1)


def _widened(edit: Edit, name: str, node: Node, pad: Pad) -> None:
    """A border of channels as a convolution."""
    axes = [axis for axis, sizes in enumerate(zip(pad.before, pad.after, strict=True))
            if any(sizes)]
    if not is_image(node.type) or len(axes) != 1 or axes[0] not in CHANNEL_AXES or (
            pad.mode != PadMode.CONSTANT or pad.value != node.type.known().zero_point):
        edit.keep(name)
        return
    [channels] = axes
    x, stride = pad.x, (1, 1)
    before = edit.nodes.get(pad.x)
    if before is not None and isinstance(before.operation, Pool) and (
            before.operation.channel_axis == channels and before.operation.kernel == (1, 1)
            and edit.graph.nodes[pad.x].operation != before.operation):     # was a slice
        x, stride = before.operation.x, before.operation.stride
    inputs = edit.graph.type_of(pad.x).shape[channels]
    weights = np.eye(node.type.shape[channels], inputs, -pad.before[channels], np.int8)
    constant = edit.constant(f"{name}.weights", weights[:, :, None, None], Quantization((1.0,)))
    edit.put(name, Conv(x=x, weights=constant, stride=stride, channel_axis=channels,
                        scales=(1.0,)), node.type, node.origin)


def _rescaled(edit: Edit, name: str, node: Node, rescale: Rescale) -> None:
    """Another scale after a convolution that only widens."""
    before = edit.nodes.get(rescale.x)
    if before is None or not isinstance(before.operation, Conv) or (
            edit.graph.nodes[rescale.x].operation == before.operation):     # was no border
        edit.keep(name)
        return
    scale = before.type.known().scale / node.type.known().scale
    del edit.nodes[rescale.x]
    edit.put(name, replace(before.operation, scales=(scale,), rounding=rescale.rounding,
                           low=rescale.low, high=rescale.high), node.type, node.origin)
