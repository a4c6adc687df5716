"""Concatenations and slices as addressing: tensors that lie inside others.

    conv ─► tiles 0 … 3 ┐                         ┌ tiles 0 … 3 ─► conv
                        ├ one tensor   one tensor ┤
    pool ─► tiles 4 … 7 ┘                         └ tiles 4 … 7 ─► pool

That is so if the axis is the outermost of the layout that has more than one index, and whatever is
not at the end fills its tiles. Nothing is copied, and no instruction is added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from ..graph.graph import Graph, Node
from ..graph.operation import normalize_axis
from ..graph.operations.data_movement.shape import Concat
from ..graph.operations.layers.window import Conv
from ..graph.types import Shape
from ..operators.layout import Layout, Stage


@dataclass(frozen=True)
class View:
    """A tensor without a layer of its own: its layout, and which tensors lie in which others, from
    which byte on."""

    layout: Layout
    inside: Mapping[str, tuple[str, int]]


def find_views(graph: Graph, made: Collection[str]) -> set[str]:
    """Nodes that may be views of int8 tensors in `made`, or of each other. A tensor lies in one
    other at most."""
    slices = {name for name, node in graph.nodes.items()
              if name in made and first_channel(graph, node) is not None
              and node.operation.operands()[0] in made}
    found, inside = set(slices), set(slices)
    for name, node in graph.nodes.items():
        if not isinstance(node.operation, Concat) or node.type.dtype != "int8":
            continue
        parts = node.operation.parts
        if len(set(parts)) == len(parts) and inside.isdisjoint(parts) and all(
                each in made or each in found for each in parts):
            found.add(name)
            inside.update(parts)
    return found


def first_channel(graph: Graph, node: Node) -> int | None:
    """The first channel that a node takes of a tensor, if some in a row are all that it takes: a
    convolution whose weights are rows of the identity."""
    conv = node.operation
    if not isinstance(conv, Conv) or conv.bias is not None or (
            conv.scales, conv.low, conv.high, conv.groups, conv.stride) != (
            (1.0,), None, None, 1, (1, 1)) or any(conv.pad):
        return None
    weights = graph.array(conv.weights)
    if weights is None or weights.shape[2:] != (1, 1) or (
            graph.type_of(conv.x).quantization != node.type.quantization):
        return None
    outputs, inputs = weights.shape[:2]
    first = int(weights[0].argmax())
    if first + outputs > inputs:                # channels of zeros are added
        return None
    is_slice = np.array_equal(weights[..., 0, 0], np.eye(outputs, inputs, first))
    return first if is_slice else None


def view_of(graph: Graph, name: str, made: Mapping[str, Layout]) -> View:
    """A node as a view of tensors that have been made. Refused if they do not lie so."""
    node = graph.nodes[name]
    missing = [each for each in node.operation.operands()
               if each not in graph.constants and each not in made]
    if missing:
        raise CompileError("what it joins is made by different programs")
    if isinstance(node.operation, Conv):
        return _slice(graph, name, node, made[node.operation.x])
    assert isinstance(node.operation, Concat), "others are no views"
    axis = normalize_axis(node.operation.axis, len(node.type.shape))
    parts = node.operation.parts
    stages = [_single_stage(graph, part, made[part]) for part in parts]
    starts = accumulate((made[part].size for part in parts[:-1]), initial=0)
    return View(_concatenated_layout(stages, axis, node.type.shape), {
        part: (name, start) for part, start in zip(parts, starts, strict=True)})


def _slice(graph: Graph, name: str, node: Node, layout: Layout) -> View:
    """Some channels of a tensor, where they lie."""
    assert isinstance(node.operation, Conv), "whoever asks has looked"
    stage, axis = _single_stage(graph, node.operation.x, layout), node.operation.channel_axis
    first = first_channel(graph, node)
    outer, block = _outermost(stage, axis)
    assert first is not None, "whoever asks has looked"
    if first % block:
        raise CompileError(f"channel {first} is not the first of a tile, which has {block}")
    count = node.type.shape[axis]
    start = first // block * int(np.prod(stage.shape[outer + 1:]))
    return View(_with_extent(stage, outer, -(-count // block), node.type.shape),
                {name: (node.operation.x, start)})


def _concatenated_layout(stages: Sequence[Stage], axis: int, shape: Shape) -> Layout:
    """The layout in which a tensor lies if its parts do so one after the other."""
    first = stages[0]
    outer, block = _outermost(first, axis)
    for stage in stages:
        if stage.steps != first.steps or _drop_axis(stage, outer) != _drop_axis(first, outer):
            raise CompileError("its parts lie in different layouts")
    for stage in stages[:-1]:
        if stage.source[axis] % block:
            raise CompileError(f"a part of {stage.source[axis]} channels does not fill its tiles, "
                               f"which have {block}")
    return _with_extent(first, outer, sum(stage.shape[outer] for stage in stages), shape)


def _single_stage(graph: Graph, tensor: str, layout: Layout) -> Stage:
    """The one stage of the layout of a tensor that has nothing around it, and its own axes: where
    only element-wise operations read it, several may lie as one."""
    stage, *others = layout.stages
    if others or stage.fill or any(stage.starts) or stage.source != graph.type_of(tensor).shape:
        raise CompileError("a tensor does not lie in tiles of its channels alone")
    return stage


def _outermost(stage: Stage, axis: int) -> tuple[int, int]:
    """The dimension that goes through an axis in blocks, which must be the outermost, and how long
    these are."""
    outer = max((place for place, (source, _) in enumerate(stage.steps) if source == axis),
                key=lambda place: stage.steps[place][1])
    if any(extent > 1 for extent in stage.shape[:outer]):
        raise CompileError("parts of it do not lie one after the other in memory")
    return outer, stage.steps[outer][1]


def _with_extent(stage: Stage, place: int, extent: int, source: Shape) -> Layout:
    return Layout((replace(stage, source=source, shape=(
        *stage.shape[:place], extent, *stage.shape[place + 1:])),))


def _drop_axis(stage: Stage, place: int) -> tuple[int, ...]:
    return (*stage.shape[:place], *stage.shape[place + 1:])
