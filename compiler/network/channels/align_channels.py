"""Channels that are joined or cut at any place, so that tiles begin there.

    a (24 channels) ┐                                  a (24, and 8 left over) ┐
                    ├ y ─► conv      becomes                                   ├ y ─► conv, whose
    b (24 channels) ┘                                  b (24 channels)         ┘ weights are 0 there

With tiles of 16 lanes, b would begin in the middle of one, and the CPU would have to move it. A
convolution computes channels in any places, and reads them from any: weights of zero for lanes that
are left over cost nothing but these lanes. So whoever computes `a` writes it where `y` is read, and
nothing is copied. What is neither computed nor read by a convolution is moved by one: its weights
are rows of the identity. A tensor that would lie in two others is copied into one of them.
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import accumulate

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import Rounding
from ...graph.graph import Graph, Node
from ...graph.operation import Operation
from ...graph.operations.data_movement.shape import Concat
from ...graph.operations.layers.window import (
    Conv,
    Pool,
    PoolKind,
    TransposedConv,
    common_channel_axis,
)
from ...graph.operations.pointwise.binary import Binary, BinaryKind
from ...graph.operations.pointwise.quantize import Clamp, Lookup, Rescale
from ...graph.operations.vision.integer_upsample import Upsample
from ...graph.types import Array, Quantization, TensorType
from ...graph.verify_graph import verify_graph
from ...operators.layout import memory_block
from ...passes.graph_edit import Edit
from ...passes.windows.rows_as_windows import adds_nothing
from .channel_cuts import Cuts

COMPUTED = (Conv, TransposedConv, Upsample, Pool, Lookup, Rescale, Clamp, Binary)

Product = Conv | TransposedConv


def align_channels(graph: Graph, config: Config) -> Graph:
    """The graph with channels moved so that what is joined, or cut off, begins with a tile of a
    configuration; the same graph where all of them do already."""
    axis = common_channel_axis(node.operation for node in graph.nodes.values())
    if axis is None:
        return graph
    cuts = Cuts(graph, axis, memory_block(config, config.block_out), config.batch)
    if not any(cuts.joins(node) or (cuts.first_of_slice(node) or 0) > 0
               for node in graph.nodes.values()):
        return graph
    return _Alignment(Edit(graph), cuts).run()


@dataclass
class _Alignment:
    """The graph so far. A tensor that is cut has two forms: with lanes left over, `tiles`, and
    `plain`, as the model has it; each is made on demand."""

    edit: Edit
    cuts: Cuts
    tiles: dict[str, str] = field(default_factory=dict)
    inside: set[str] = field(default_factory=set)       # tensors that lie in others

    @property
    def graph(self) -> Graph:
        return self.edit.graph

    def run(self) -> Graph:
        for name, node in self.graph.nodes.items():
            self._put(name, node)
        for name in self.graph.outputs:
            self._plain(name)
        found = self.edit.finish()
        verify_graph(found)
        return found

    def _put(self, name: str, node: Node) -> None:
        cuts, operation = self.cuts, node.operation
        if cuts.joins(node):
            assert isinstance(operation, Concat), "others join nothing"
            self._join(name, node, operation)
        elif cuts.first_of_slice(node) is not None and cuts.is_view(node):
            self._cut(name, node)
        elif cuts.same_channels(node) and cuts.is_moved(name) and self._is_known(node):
            self._put_channel_by_channel(name, node)
        elif isinstance(operation, Product) and operation.groups == 1 and self._is_known(node):
            self._put_product(name, node, operation)
        else:
            self.edit.nodes[name] = replace(node, operation=operation.rename_operands(self._plain))

    def _is_known(self, node: Node) -> bool:
        """Whether weights and bias are constants, if there are any."""
        operation = node.operation
        return not isinstance(operation, Product) or (
            operation.weights in self.graph.constants
            and (operation.bias is None or operation.bias in self.graph.constants))

    def _plain(self, name: str) -> str:
        """A tensor as the model has it."""
        if name in self.tiles and name not in self.edit.nodes and name in self.graph.nodes:
            places, count = self.cuts.places(name)
            node = self.graph.nodes[name]
            self._select(name, node, self.tiles[name], np.eye(count, dtype=np.int8)[places])
        return name

    def _in_tiles(self, name: str) -> str:
        """A tensor whose segments begin with tiles: itself, if they do anyway."""
        if not self.cuts.is_moved(name):
            return name
        if name not in self.tiles:
            places, count = self.cuts.places(name)
            weights = np.zeros((count, len(places)), np.int8)
            weights[places, np.arange(len(places))] = 1
            type_ = self.graph.type_of(name)
            self._select(self._new(name), Node(Concat(parts=(), axis=0), self._wider(name, type_)),
                         name, weights)
        return self.tiles[name]

    def _new(self, name: str) -> str:
        """The name of a tensor in tiles: its own if it is not moved."""
        if not self.cuts.is_moved(name):
            return name
        self.tiles[name] = self.edit.fresh(f"{name}.tiles")
        return self.tiles[name]

    def _wider(self, name: str, type_: TensorType) -> TensorType:
        shape = list(type_.shape)
        if self.cuts.is_moved(name):
            shape[self.cuts.axis] = self.cuts.places(name)[1]
        return replace(type_, shape=tuple(shape))

    def _select(self, name: str, node: Node, x: str, weights: Array) -> None:
        """Some channels, each in a place, by a convolution."""
        constant = self.edit.constant(f"{name}.places", weights[..., None, None],
                                      Quantization((1.0,)))
        self.edit.put(name, Conv(x=x, weights=constant, channel_axis=self.cuts.axis,
                                 scales=(1.0,)), node.type, node.origin)

    def _cut(self, name: str, node: Node) -> None:
        """Channels in a row: those of `places` and all that are left over between them."""
        x, = (each for each in node.operation.operands() if each not in self.graph.constants)
        first = self.cuts.first_of_slice(node)
        source, count = self.cuts.places(x)
        places, wanted = self.cuts.places(name)
        start = int(source[first])
        assert np.array_equal(source[first:][:len(places)] - start, places), "cuts agree"
        put = self._new(name)
        self._select(put, replace(node, type=self._wider(name, node.type)), self._in_tiles(x),
                     np.eye(wanted, count, start, np.int8))
        self.inside.add(put)

    def _join(self, name: str, node: Node, concat: Concat) -> None:
        if not self.cuts.is_view(node):
            self._add_up(name, node, concat)
            return
        parts = tuple(self._part(each) for each in concat.parts)
        self.edit.put(self._new(name), replace(concat, parts=parts), self._wider(name, node.type),
                      node.origin)

    def _part(self, tensor: str) -> str:
        """A tensor that lies in no other yet, and that a layer computes or others are joined to."""
        found = self._in_tiles(tensor)
        node = self.edit.nodes.get(found)
        if found in self.inside or node is None or not (
                isinstance(node.operation, COMPUTED) or self.cuts.joins(node)):
            copy = self.edit.fresh(f"{found}.copy")
            self.edit.put(copy, Pool(x=found, kind=PoolKind.MAX, kernel=(1, 1),
                                     channel_axis=self.cuts.axis),
                          self._wider(tensor, self.graph.type_of(tensor)))
            found = copy
        self.inside.add(found)
        return found

    def _add_up(self, name: str, node: Node, concat: Concat) -> None:
        """Several images: each part among zeros, added up, which keeps every number."""
        parts = [self._plain(each) for each in concat.parts]
        if not adds_nothing(node.type) or len(parts) < 2:
            self.edit.put(name, replace(concat, parts=tuple(parts)), node.type, node.origin)
            return
        depth = node.type.shape[self.cuts.axis]
        starts = accumulate((self.cuts.channels(each) for each in concat.parts), initial=0)
        total = ""
        for number, (part, start) in enumerate(zip(parts, starts, strict=False)):
            among = self.edit.fresh(f"{name}.part")
            self._select(among, node, part, np.eye(depth, self.cuts.channels(part), -start,
                                                   np.int8))
            if not total:
                total = among
                continue
            result = name if number == len(parts) - 1 else self.edit.fresh(f"{name}.sum")
            self.edit.put(result, Binary(kind=BinaryKind.ADD, left=total, right=among,
                                         rounding=Rounding.TWICE), node.type, node.origin)
            total = result

    def _put_channel_by_channel(self, name: str, node: Node) -> None:
        """Pools, functions of each number and depthwise convolutions, in places of their
        operands."""
        moved = self.cuts.same_channels(node)

        def rename(each: str) -> str:
            if each not in moved:
                return each
            return self._in_tiles(each) if each not in self.graph.constants else (
                self._spread_constant(each, name, self.cuts.axis))

        operation: Operation = node.operation.rename_operands(rename)
        if isinstance(operation, Conv):
            operation = self._with_outputs(operation, name)
            operation = replace(operation, groups=self.cuts.places(name)[1])
        self.edit.put(self._new(name), operation, self._wider(name, node.type), node.origin)

    def _put_product(self, name: str, node: Node, product: Product) -> None:
        """A convolution: weights of zero where there are no channels."""
        x = product.x
        if x in self.tiles:
            weights = self._spread_constant(product.weights, x, 1)
            product = replace(product, x=self.tiles[x], weights=weights)
        if self.cuts.is_moved(name):
            product = self._with_outputs(product, name)
        self.edit.put(self._new(name), product, self._wider(name, node.type), node.origin)

    def _with_outputs(self, product: Product, name: str) -> Product:
        """A convolution with output channels in the places of a tensor."""
        places, count = self.cuts.places(name)
        bias = product.bias and self._spread_constant(product.bias, name, 0)
        scales = product.scales
        if len(scales) > 1:
            every = np.full(count, scales[0])
            every[places] = scales
            scales = tuple(every.tolist())
        return replace(product, weights=self._spread_constant(product.weights, name, 0),
                       bias=bias, scales=scales)

    def _spread_constant(self, constant: str, tensor: str, axis: int) -> str:
        """A constant with indices of an axis in the places of a tensor's channels, and numbers
        that stand for zero in between."""
        known = self.edit.constants[constant]
        places, count = self.cuts.places(tensor)
        shape = list(known.array.shape)
        shape[axis] = count
        quantization, fill = known.type.quantization, np.zeros((), known.array.dtype)
        if quantization is not None and quantization.axis in (axis, axis - len(shape)) and (
                len(quantization.scales) > 1):
            every = np.zeros(count, np.int64)
            every[places] = np.arange(len(places))
            quantization = replace(
                quantization, scales=tuple(quantization.scales[each] for each in every),
                zero_points=tuple(quantization.zero_points[each] for each in every))
        if quantization is not None:
            fill = quantization.along(quantization.zero_points, len(shape))
        array = np.empty(shape, known.array.dtype)
        array[...] = fill
        array[(slice(None),) * axis + (places,)] = known.array
        return self.edit.constant(f"{constant}.tiles", array, quantization)
