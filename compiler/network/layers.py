"""Layers: nodes compiled for the accelerator, each with the layouts of what it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ..graph.graph import Graph
from ..graph.types import Array
from ..operators.convolution.conv2d import Conv2d
from ..operators.dense.dense import Dense
from ..operators.dense.dense import Layout as Order
from ..operators.depthwise.conv_separable import ConvSeparable
from ..operators.description import Description
from ..operators.elementwise.lanewise import Lanewise
from ..operators.form import FormKey
from ..operators.kernel import Kernel
from ..operators.layout import Layout, largest_block
from ..operators.packing import check_operands
from ..operators.segment_sizes import OUTPUT
from .kernel_search import KernelSearch
from .task import Task
from .tile_layouts import cover_layout, natural_layout, positions, same_bytes

FOLDABLE = (Conv2d, ConvSeparable)      # descriptions with forms whose input the host folds


def is_padding_unused(spec: Description, config: Config) -> bool:
    """Whether an operator multiplies by zero what lies between the elements of its operands.
    A product of activations does not: programs leave anything there."""
    return not isinstance(spec, Dense) or spec.constant_weights or not spec.inputs % largest_block(
        config)


def _in_other_order(task: Task) -> Task | None:
    """A product with weights whose rows and blocks of channels change places."""
    spec = task.spec
    if not isinstance(spec, Dense) or not spec.constant_weights:
        return None
    order = Order.ROWS if spec.layout == Order.BLOCKS else Order.BLOCKS
    return replace(task, spec=replace(spec, layout=order))


class Misfit(Exception):        # noqa: N818    # no error: the layer begins another program
    """A layer needs a tensor in another layout than the program has."""


@dataclass(frozen=True, eq=False)
class CompiledLayer:
    """A node's kernel, the layouts in which it reads and writes tensors of the graph, and its
    constants, packed."""

    node: str
    kernel: Kernel
    reads: Mapping[str, tuple[str, Layout]]         # tensor of the program → tensor, layout
    output: Layout
    constants: Mapping[str, bytes]
    parts: tuple[str, ...] = ()                     # other nodes that are computed with it
    with_next: bool = False                         # at the same time as the layer after it
    stays: bool = False                             # its result, on the chip, for that one alone


@dataclass
class LayerCompiler:
    """Makes layers of the nodes of a graph."""

    graph: Graph
    tasks: Mapping[str, Task]               # by node
    channel_axis: int | None                # of all images of the network
    kernels: KernelSearch
    packed: dict[tuple[str, FormKey], tuple[Mapping[str, Array], dict[str, bytes]]] = field(
        default_factory=dict, init=False)

    def layer(self, node: str, made: Mapping[str, Layout], *, half: bool = False) -> CompiledLayer:
        """A node's layer, where some tensors are in a program already; `half`, if it has half of
        every scratchpad. Raises Misfit if a tensor is there in a layout that it cannot take."""
        task = self.tasks[node]
        try:
            return self._layer(node, task, made, half)
        except Misfit:
            other = _in_other_order(task)
            if other is None:
                raise
            return self._layer(node, other, made, half)

    def _layer(self, node: str, task: Task, made: Mapping[str, Layout],
               half: bool) -> CompiledLayer:
        if isinstance(task.spec, Lanewise):
            return self._lanewise(node, task, task.spec, made, half)
        tensor = task.reads.get("data", "")
        permuted = self._permute_weights(task, made[tensor]) if tensor in made else None
        if permuted is not None:
            task, kernel = permuted, self.kernels.kernel(permuted.spec, half=half)
            layouts = {**kernel.form.layouts, "data": made[tensor]}
        else:
            kernel = self.kernels.kernel(task.spec, half=half,
                                         plain=type(task.spec) in FOLDABLE and tensor in made)
            layouts = {name: self._layout(node, task, name, layout)
                       for name, layout in kernel.form.layouts.items()
                       if name in (OUTPUT, *task.reads)}
        reads = {operand: (each, layouts[operand]) for operand, each in task.reads.items()}
        if any(each in made and not (same_bytes(made[each], layout) and is_padding_unused(
                task.spec, self.kernels.config)) for each, layout in reads.values()):
            raise Misfit
        return CompiledLayer(node, kernel, reads, layouts[OUTPUT],
                             self._constants(node, kernel, task))

    def _layout(self, node: str, task: Task, operand: str, layout: Layout) -> Layout:
        """The layout of the tensor that is an operand, or the result, of an operator."""
        if operand in task.views:
            return task.views[operand].layout(layout)
        if task.axes is None:
            return layout
        shape = self.graph.nodes[node].type.shape if operand == OUTPUT else task.shapes[operand]
        return layout.with_axes(shape, task.axes)

    def _lanewise(self, node: str, task: Task, spec: Lanewise, made: Mapping[str, Layout],
                  half: bool) -> CompiledLayer:
        """An element-wise layer: tile by tile, in the layout of its operands."""
        present = [made[tensor] for tensor in task.reads.values() if tensor in made]
        if any(not same_bytes(present[0], other) for other in present[1:]):
            raise Misfit
        config = self.kernels.config
        layout = present[0] if present else natural_layout(
            task.shapes[next(iter(task.reads))], config, self.channel_axis)
        kernel = self.kernels.kernel(cover_layout(spec, layout, config), half=half)
        reads = {operand: (tensor, layout) for operand, tensor in task.reads.items()}
        return CompiledLayer(node, kernel, reads, layout, self._constants(node, kernel, task))

    def with_kernel(self, layer: CompiledLayer, kernel: Kernel) -> CompiledLayer:
        """A layer over a tensor of its program, computed by another kernel of its description."""
        task, (_, layout) = self.tasks[layer.node], layer.reads["data"]
        return replace(layer, kernel=kernel, constants=self._constants(
            layer.node, kernel, self._permute_weights(task, layout) or task))

    def _constants(self, node: str, kernel: Kernel, task: Task) -> dict[str, bytes]:
        """Weights and parameters as the program takes them, packed once for each form: a node may
        be compiled again, with half of the scratchpads or another schedule."""
        form = kernel.form
        given, known = self.packed.get((node, form.key), (None, {}))
        if given is not task.constants:             # those of another task of the node
            blank = {each.name: np.zeros(each.shape, np.int8) for each in form.operands
                     if each.name in task.reads}
            packed = form.pack_inputs(check_operands(form.operands, {**blank, **task.constants}))
            known = {name: np.ascontiguousarray(each).tobytes() for name, each in packed.items()
                     if name not in task.reads}
            self.packed[node, form.key] = task.constants, known
        return known

    def _permute_weights(self, task: Task, layout: Layout) -> Task | None:
        """A fully connected layer whose rows are those of a tile, over tiles as they lie: its
        weights are moved to where their inputs are. None if it cannot take them so."""
        spec, config = task.spec, self.kernels.config
        if not isinstance(spec, Dense) or not spec.constant_weights or spec.matrices > 1 or (
                spec.rows > config.batch or layout.size % (config.batch * config.block_in)):
            return None
        found = positions(layout)
        if "data" in task.views:
            found = task.views["data"].positions(found)
        tiles = found.reshape(-1, config.batch, config.depthwise_lanes)
        where = tiles[:, 0].ravel()
        for row in range(1, spec.rows):
            if (tiles[:, row].ravel() != np.where(where > 0, where + row * spec.inputs, 0)).any():
                return None
        weights = task.constants["weights"]
        moved = np.where(where > 0, weights[:, np.maximum(where - 1, 0)], 0).astype(np.int8)
        return replace(task, spec=replace(spec, inputs=len(where)),
                       constants={**task.constants, "weights": moved})
