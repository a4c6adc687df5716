"""Images with channels first, as ONNX has them, from a graph with channels last."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ..compiler.graph.graph import Graph, Node
from ..compiler.graph.operation import Operation, normalize_axis
from ..compiler.graph.operations.data_movement.blocks import DepthToSpace, SpaceToDepth
from ..compiler.graph.operations.data_movement.shape import Concat, Pad, Slice, Transpose
from ..compiler.graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LocalResponseNorm,
)
from ..compiler.graph.operations.layers.reduction import Reduce
from ..compiler.graph.operations.layers.window import _Window
from ..compiler.graph.operations.pointwise.binary import Binary
from ..compiler.graph.operations.pointwise.logic import Compare, Where
from ..compiler.graph.operations.pointwise.quantize import Clamp
from ..compiler.graph.operations.pointwise.unary import Cast, Unary
from ..compiler.graph.operations.vision.resize import Resize
from ..compiler.graph.types import TensorType
from ..compiler.passes.graph_edit import Edit

Each = TypeVar("Each")
TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
WITH_CHANNELS = (_Window, BatchNorm, InstanceNorm, LocalResponseNorm, DepthToSpace, SpaceToDepth)
EACH_NUMBER = (Unary, Clamp, Cast, Binary, Compare, Where)
AXES = 4


def channels_first(graph: Graph) -> Graph:
    """Move channels to the front wherever an operator has them last, and leave them there through
    all operators that do not care where they are.

        y = Conv(x, w, channel_axis=3)      becomes    a = Transpose(x, order=(0, 3, 1, 2))
                                                       y = Conv(a, w, channel_axis=1)

    Transposes remain at inputs, at outputs and where a reshape needs the order of before. Tensors
    keep their names, and what still has channels last gets a new one.
    """
    if not any(isinstance(node.operation, WITH_CHANNELS) and _is_last(node)
               for node in graph.nodes.values()):
        return graph
    move = _Move(Edit(graph))
    for name, node in graph.nodes.items():
        move.add(name, node)
    return move.edit.finish()


def _is_last(node: Node) -> bool:
    operation: Any = node.operation
    return len(node.type.shape) == AXES and operation.channel_axis == AXES - 1


@dataclass
class _Move:
    edit: Edit
    first: dict[str, str] = field(default_factory=dict)     # a tensor, and it with channels first
    last: dict[str, str] = field(default_factory=dict)      # and with channels last, where needed

    def add(self, name: str, node: Node) -> None:
        operation = node.operation
        operands = operation.operands()
        if isinstance(operation, WITH_CHANNELS) and _is_last(node):
            moved: Operation = replace(operation, channel_axis=1)
            self._put_channels_first(name, node, moved, {operands[0]: self._to_first(operands[0])})
        elif self._follows(node) and (changed := self._to_channels_first(node)) is not None:
            names = {each: self._to_first(each) for each in operands
                     if each in self.first or each in self.edit.constants}
            self._put_channels_first(name, node, changed, names)
        else:
            names = {each: self._to_last(each) for each in operands}
            self.edit.put(name, operation.rename_operands(lambda each: names[each]), node.type,
                          node.origin)

    def _follows(self, node: Node) -> bool:
        """Whether all images that a node reads have channels first already."""
        images = [each for each in node.operation.operands() if each not in self.edit.constants]
        return len(node.type.shape) == AXES and bool(images) and all(
            each in self.first for each in images)

    def _to_channels_first(self, node: Node) -> Operation | None:
        """An operation on images with channels first; None if it depends on the order."""
        operation = node.operation
        match operation:
            case Concat(axis=axis):
                return replace(operation, axis=TO_FIRST.index(normalize_axis(axis, AXES)))
            case Pad(before=before, after=after):
                return replace(operation, before=_turn(before), after=_turn(after))
            case Slice(starts=starts, stops=stops, steps=steps):
                return replace(operation, starts=_turn(starts), stops=_turn(stops),
                               steps=_turn(steps))
            case Resize(shape=shape, ratios=ratios):
                return replace(operation, shape=_turn(shape), ratios=ratios and _turn(ratios))
            case Reduce(axes=axes, keep=True):
                return replace(operation, axes=tuple(TO_FIRST.index(normalize_axis(each, AXES))
                                                     for each in axes))
            case _:
                return operation if isinstance(operation, EACH_NUMBER) else None

    def _put_channels_first(self, name: str, node: Node, operation: Operation,
                            names: dict[str, str]) -> None:
        type_ = _channels_first_type(node.type)
        target = name if name not in self.edit.graph.outputs else self.edit.fresh(
            f"{name}.channels_first")
        self.edit.put(target, operation.rename_operands(lambda each: names.get(each, each)), type_,
                      node.origin)
        self.first[name] = target
        if target != name:
            self.edit.put(name, Transpose(x=target, order=TO_LAST), node.type, node.origin)
            self.last[name] = name

    def _to_first(self, name: str) -> str:
        if name not in self.first:
            constant = self.edit.constants.get(name)
            if constant is not None:
                shape = (1,) * (AXES - len(constant.type.shape)) + constant.type.shape
                turned = np.ascontiguousarray(constant.array.reshape(shape).transpose(TO_FIRST))
                self.first[name] = self.edit.constant(f"{name}.channels_first", turned)
            else:
                moved = self.edit.fresh(f"{name}.channels_first")
                self.edit.put(moved, Transpose(x=name, order=TO_FIRST),
                              _channels_first_type(self.edit.graph.type_of(name)))
                self.first[name], self.last[name] = moved, name
        return self.first[name]

    def _to_last(self, name: str) -> str:
        if name not in self.first or name in self.edit.constants:
            return name
        if name not in self.last:
            self.last[name] = self.edit.fresh(f"{name}.channels_last")
            self.edit.put(self.last[name], Transpose(x=self.first[name], order=TO_LAST),
                          self.edit.graph.type_of(name))
        return self.last[name]


def _turn(values: tuple[Each, ...]) -> tuple[Each, ...]:
    return tuple(values[axis] for axis in TO_FIRST)


def _channels_first_type(type_: TensorType) -> TensorType:
    return replace(type_, shape=_turn(type_.shape))
