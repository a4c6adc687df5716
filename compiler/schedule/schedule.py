"""Schedules: how a tensor expression is computed, apart from what it is.

A schedule has a stage for each computed tensor (`stage`). Its primitives change the loops, where
intermediate tensors lie and when they are computed, but never the result. `lower` turns a schedule
into a loop nest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import CompileError
from ..expression.expression import Expression
from ..expression.rewrite import inline_tensor, with_tensor
from ..expression.tensor import Tensor, compute, topological_order
from ..nest.nest import Scope
from .stage import Stage

__all__ = ["Schedule", "Stage"]

COPY, INSIDE, OUTSIDE, MADE = "copy", "inside", "outside", "made"       # what a tensor remembers


class Schedule:
    """The stages of everything that some outputs are computed from."""

    def __init__(self, *outputs: Tensor):
        self.outputs = list(outputs)
        self._replaced: dict[Tensor, Tensor] = {}
        self.stages: dict[Tensor, Stage] = {}
        for tensor in topological_order(*outputs):
            if tensor.body is not None:
                self.stages[tensor] = _plain_stage(tensor)

    def __getitem__(self, tensor: Tensor) -> Stage:
        if tensor not in self.stages:
            kind = "a placeholder" if tensor.body is None else "not part of this schedule"
            raise CompileError(f"{tensor.name} has no stage: it is {kind}")
        return self.stages[tensor]

    def inlined_body(self, tensor: Tensor) -> Expression:
        """The body of a tensor, with the bodies of inlined tensors substituted."""
        body = tensor.body
        assert body is not None, "a stage computes it"
        for each, stage in reversed(self.stages.items()):
            if stage.inlined:
                body = inline_tensor(body, each)
        return body

    def cache_read(self, tensor: Tensor, scope: Scope, *readers: Tensor) -> Tensor:
        """Let some readers read a copy of a tensor in a scratchpad.

            y[i] = f(x[i])    →    x.inp[i] = x[i]; y[i] = f(x.inp[i])

        Returns the copy. The readers are replaced; ask the schedule for their stages anew
        (`renewed`).
        """
        def make() -> Tensor:
            return compute(f"{tensor.name}.{scope.value}", tensor.shape, lambda *axes: tensor[axes])

        copy = _remember(tensor, (COPY, scope), make)
        if copy in self.stages or copy in self._replaced:       # this is another one
            copy = make()
        for reader in readers:
            if tensor not in reader.inputs():
                raise CompileError(f"{reader.name} does not read {tensor.name}")
            self._replace(reader, _reading(reader, tensor, copy))
        self._insert(copy, scope)
        return copy

    def cache_write(self, tensor: Tensor, scope: Scope) -> Tensor:
        """Compute a tensor in a scratchpad and copy it to its place afterwards.

            y[i] = f(i)    →    y.acc[i] = f(i); y[i] = y.acc[i]

        Returns the tensor in the scratchpad.
        """
        stage = self[tensor]
        if stage.relations or stage.leaves != [*tensor.axes, *tensor.reduce_axes]:
            raise CompileError(f"{stage} has been scheduled already; cache_write comes first")
        inside = _remember(tensor, (INSIDE, scope), lambda: replace(
            tensor, name=f"{tensor.name}.{scope.value}"))
        outside = _remember(inside, (OUTSIDE, scope), lambda: compute(
            tensor.name, tensor.shape, lambda *axes: inside[axes]))
        self._replace(tensor, outside)
        self._insert(inside, scope)
        return inside

    def replacement_of(self, tensor: Tensor) -> Tensor:
        """The tensor that has taken the place of one that was replaced."""
        while tensor in self._replaced:
            tensor = self._replaced[tensor]
        return tensor

    def load_first(self, tensor: Tensor) -> None:
        """Load a tensor before everything else that the same loop loads."""
        self.stages = {tensor: self[tensor], **self.stages}

    def _insert(self, tensor: Tensor, scope: Scope) -> None:
        stage = _plain_stage(tensor)
        stage.scope = scope
        order = topological_order(*self.outputs)
        self.stages[tensor] = stage
        self.stages = {each: self.stages[each] for each in order if each in self.stages}

    def _replace(self, old: Tensor, new: Tensor) -> None:
        """Put a tensor in the place of another, and everything that reads it."""
        stage = self.stages.pop(old)
        if stage.relations or stage.intrinsic is not None:
            raise CompileError(f"{stage} has been scheduled already; caches come first")
        renewed = _plain_stage(new)
        renewed.scope, renewed.inlined = stage.scope, stage.inlined
        self.stages[new] = renewed
        self._replaced[old] = new
        self.outputs = [new if each is old else each for each in self.outputs]
        for reader in [each for each in self.stages if old in each.inputs()]:
            if reader is not new:
                self._replace(reader, _reading(reader, old, new))


def _reading(reader: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """The reader with the new tensor wherever it reads the old one."""
    return _remember(reader, (old, new), lambda: with_tensor(reader, old, new))


def _remember(tensor: Tensor, key: tuple[object, ...], make: Callable[[], Tensor]) -> Tensor:
    """What is made of a tensor. Schedules of one expression differ in their loops, and make the
    same copies of its tensors again and again: the first ones will do for all."""
    made: dict[tuple[object, ...], Tensor] = tensor.__dict__.setdefault(MADE, {})
    if key not in made:
        made[key] = make()
    return made[key]


def _plain_stage(tensor: Tensor) -> Stage:
    return Stage(tensor, [*tensor.axes, *tensor.reduce_axes])

