"""Moves of channels and pixels into the convolution after or before them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ...graph.graph import Graph, Node
from ...graph.operations.layers.window import Conv, common_channel_axis
from ...graph.types import Array, GraphError, Quantization, TensorType
from ..graph_edit import Edit
from .window_of_moves import BORDER, Taps, Window, is_image, place_taps, windows_before

Weights = tuple[Array, Quantization]
LONGEST = 16                # rows or columns of a window


def fold_moves(graph: Graph) -> Graph:
    """Let a convolution read what moves would give it where it lies, and write its channels in the
    order that they are wanted in.

        a = SpaceToDepth(x, block=2)
        y = Conv(a, w)                  becomes     y = Conv(x, v, stride=(2, 2)), where v has the
                                                    weights of w at other places
        a = Conv(x, w)
        y = Transpose(a) of channels    becomes     y = Conv(x, v), where v has the rows of w in
                                                    another order

    Slices in steps that are joined as channels, shuffles, and channels that are chosen or repeated
    are such moves, and reshapes and transposes that do the same. Exact, since sums have the same
    products in them. Not where the weights would have more numbers, as those of channels that a
    slice leaves out, than the move itself would take: some channels in a row are read where they
    lie anyway.
    """
    axis = common_channel_axis(node.operation for node in graph.nodes.values())
    if axis is None:
        return graph
    edit = Edit(graph)
    return edit.rewrite(_Fold(edit, axis).substitute)


@dataclass
class _Fold:
    """The graph so far."""

    edit: Edit
    channels: int           # the axis

    def substitute(self, name: str, node: Node) -> bool:
        conv = node.operation
        if not isinstance(conv, Conv):
            return is_image(node.type) and self._choose_outputs(name, node)
        known = self._weights(conv)
        if known is None or not is_image(self.edit.graph.type_of(conv.x)):
            return False
        for source, window in windows_before(self.edit.graph, conv.x, self.channels):
            type_ = self.edit.graph.type_of(source)
            alone = self._read_by(conv.x, {name}) and self._is_alone(source, conv.x)
            found = read_through(conv, known[0], window, type_, alone=alone)
            if found is None:
                continue
            changed, weights = found
            constant = self.edit.constant(f"{name}.weights", weights, known[1])
            changed = replace(changed, x=source, weights=constant)
            if self._fits(changed, node, type_, self.edit.constants[constant].type):
                self.edit.put(name, changed, node.type, node.origin)
                return True
        return False

    def _weights(self, conv: Conv) -> Weights | None:
        """The weights of a convolution in one group, and their scales, if they are constant and
        without zero points."""
        found = self.edit.graph.constants.get(conv.weights)
        known = None if found is None else found.type.quantization
        if found is None or known is None or any(known.zero_points) or conv.groups != 1 or (
                found.type.dtype != "int8"):
            return None
        return found.array, known

    def _fits(self, conv: Conv, node: Node, x: TensorType, weights: TensorType) -> bool:
        try:
            return conv.infer(x, weights).shape == node.type.shape
        except GraphError:
            return False

    def _choose_outputs(self, name: str, node: Node) -> bool:
        """A convolution that nothing else reads, with the channels that moves after it leave."""
        graph = self.edit.graph
        for source, window in windows_before(graph, name, self.channels):
            before = graph.nodes.get(source)
            conv = None if before is None else before.operation
            if not isinstance(conv, Conv) or before is None or not window.keeps_pixels or (
                    BORDER in window.channels
                    or not self._is_alone(source, name, including_source=True)):
                continue
            known = self._weights(conv)
            if known is None or len(window.channels) > len(known[0]):
                continue
            self._put_chosen(name, node, conv, known, window.channels)
            return True
        return False

    def _is_alone(self, source: str, name: str, *, including_source: bool = False) -> bool:
        """Whether what lies between a tensor and one that is made of it is read for that only."""
        graph, between, waiting = self.edit.graph, {name}, [name]
        while waiting:
            for each in graph.nodes[waiting.pop()].operation.operands():
                if each in graph.nodes and each not in between and each != source:
                    between.add(each)
                    waiting.append(each)
        made = between - {name} | ({source} if including_source else set())
        return all(self._read_by(each, between) for each in made)

    def _read_by(self, tensor: str, nodes: set[str]) -> bool:
        graph = self.edit.graph
        return tensor not in graph.outputs and nodes.issuperset(graph.readers[tensor])

    def _put_chosen(self, name: str, node: Node, conv: Conv, known: Weights,
                    chosen: Array) -> None:
        weights, scales = known
        if len(scales.scales) > 1:
            scales = replace(scales, scales=tuple(np.array(scales.scales)[chosen].tolist()),
                             zero_points=(0,) * len(chosen))
        constant = self.edit.constant(f"{name}.weights", weights[chosen], scales)
        bias = None
        if conv.bias is not None:
            known_bias = self.edit.graph.constants[conv.bias]
            bias = self.edit.constant(f"{name}.bias", known_bias.array[chosen],
                                      known_bias.type.quantization)
        factors = tuple(np.array(conv.scales)[chosen].tolist()) if len(conv.scales) > 1 else (
            conv.scales)
        self.edit.put(name, replace(conv, weights=constant, bias=bias, scales=factors), node.type,
                      node.origin)


def read_through(conv: Conv, weights: Array, window: Window, source: TensorType, *,
                 alone: bool) -> tuple[Conv, Array] | None:
    """A convolution of what a window takes from an image, as one of the image, and its weights.
    None if it has more products than both, or than itself if others need the moves anyway, or does
    not see the same border."""
    _, high, wide, depth = conv.image(source)
    outputs, inputs, *kernel = weights.shape
    rows, columns = (_compose_axis(conv, kernel[axis], window, axis, size)
                     for axis, size in enumerate((high, wide)))
    if rows is None or columns is None:
        return None
    size = (rows.taps.length, columns.taps.length)
    moves = prod(conv.stride) * _count_products(window, inputs, depth) if alone else 0
    if max(size) > LONGEST or (
            outputs * depth * prod(size) > outputs * inputs * prod(kernel) + moves):
        return None
    found = np.zeros((outputs, depth, *size), np.int32)
    for each in np.flatnonzero(window.channels != BORDER):
        for i, j in np.ndindex(kernel[0], kernel[1]):
            found[:, window.channels[each], rows.taps.places[i, each],
                  columns.taps.places[j, each]] += weights[:, each, i, j]
    limits = np.iinfo(np.int8)
    if found.min() < limits.min or found.max() > limits.max:
        return None                                 # channels that are repeated meet
    return replace(conv, stride=(rows.stride, columns.stride), pad=(
        *rows.taps.pad, *columns.taps.pad), dilation=(rows.dilation, columns.dilation)), (
        found.astype(np.int8))


@dataclass(frozen=True)
class _Axis:
    """A composed window along one axis: where each tap finds each channel, in dilated taps."""

    taps: Taps
    stride: int
    dilation: int


def _compose_axis(conv: Conv, kernel: int, window: Window, axis: int, size: int) -> _Axis | None:
    step, (before, after) = window.stride[axis], conv.pad[2 * axis:2 * axis + 2]
    places = (window.rows, window.columns)[axis] - window.pad[2 * axis]
    inner = (size + sum(window.pad[2 * axis:2 * axis + 2]) - window.kernel[axis]) // step + 1
    if (before and places.max() >= step) or (after and inner * step + places.min() < size):
        return None                         # what is outside of one lies inside of the other
    alike = (places[window.channels != BORDER] == places[0]).all() and kernel > 1
    dilation = conv.dilation[axis] * step if alike else 1
    first = (np.arange(kernel) * conv.dilation[axis] - before)[:, None] * step + places
    count = (inner + before + after - (kernel - 1) * conv.dilation[axis] - 1) // (
        conv.stride[axis]) + 1
    taps = place_taps(first, count, size, step * conv.stride[axis])
    if (taps.length - 1) % dilation or (taps.places % dilation).any():
        dilation = 1                        # the window begins between taps
    return _Axis(Taps(taps.places // dilation, (taps.length - 1) // dilation + 1, taps.pad),
                 step * conv.stride[axis], dilation)


def _count_products(window: Window, inputs: int, depth: int) -> int:
    """What a pixel of the moves costs as a window; channels in a row are read where they lie."""
    in_a_row = window.keeps_pixels and BORDER not in window.channels and (
        np.diff(window.channels) == 1).all()
    return 0 if in_a_row else inputs * depth * prod(window.kernel)
