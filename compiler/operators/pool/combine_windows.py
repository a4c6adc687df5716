"""The rule that gives the instructions of windows that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import AluOp, Instruction
from ...accelerator.selection.instruction_rules import STEP, Combine, Loops
from ...accelerator.selection.instructions import alus
from ...accelerator.selection.intrinsic import Intrinsic, pool, pool_sum
from ...expression.affine import Affine
from ...expression.expression import Axis
from .overlapping_windows import Inside, fastest_steps


@dataclass(frozen=True)
class SlidingCombine(Combine):
    """Tiles combined along windows of one axis that overlap; other loops as `Combine` has them.

    along       the loop over results, by name
    inside      elements along it that are no border, if the border is to be left out
    seen        places of loop x that are used, if others are not
    """

    along: str
    inside: Inside | None = None
    seen: Inside | None = None

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        result, source = loops.tiles
        window = [axis for axis in loops.axes if not result.of(axis) and axis.extent > 1]
        slides = [axis for axis in loops.axes if axis.name == self.along and axis.extent > 1
                  and len(window) == 1 and source.of(axis) % source.of(window[0]) == 0]
        if not loops.begins or not slides:
            return super().__call__(loops)
        return self._slide(loops.axes, slides[0], window[0], result, source)

    def _slide(self, axes: Sequence[Axis], along: Axis, window: Axis, result: Affine,
               source: Affine) -> Iterator[Instruction]:
        apart, element = result.of(along), source.of(window)
        others, dst, src = [], result.drop_axes(along), source.drop_axes(along, window)
        for axis in axes:
            if axis.name == "x" != self.along and self.seen is not None:
                first, last = self.seen
                part = Axis(axis.name, last - first + 1, axis.reduces)
                dst, src = (_rename(each, axis, part, first) for each in (dst, src))
                others.append(part)
            elif axis not in (along, window):
                others.append(axis)
        vectors = prod(axis.extent for axis in others)
        given = along.extent, window.extent, source.of(along) // element, self.inside
        for step in fastest_steps(*given, vectors):
            walks = [(Axis("step", walk.extent, False), walk) for walk in step.loops
                     if walk.extent > 1]
            moved = Affine(0, {axis: walk.result * apart for axis, walk in walks if walk.result})
            target = dst + moved + Affine(step.target * apart, {})
            left = target if step.source is None else (
                dst + moved + Affine(step.source * apart, {}))
            right = src + Affine(step.element * element, {
                axis: walk.element * element for axis, walk in walks if walk.element})
            yield from alus([*(axis for axis, _ in walks), *others],
                            AluOp.MOVE if step.source is None else self.op, target, left, right)


def _rename(index: Affine, axis: Axis, part: Axis, first: int) -> Affine:
    """An index whose loop goes on from `first`."""
    step = index.of(axis)
    return index.drop_axes(axis) + Affine(step * first, {part: step} if step else {})


def sliding_intrinsic(config: Config, op: AluOp, along: str, inside: Inside | None = None,
                      seen: Inside | None = None) -> Intrinsic:
    """The step of a maximum, or of a sum, whose loops are windows that overlap."""
    plain = pool(config) if op == AluOp.MAX else pool_sum(config)
    name = f"{plain.name}.{along}[{inside},{seen}]"
    return Intrinsic(name, plain.tensor, plain.scopes, plain.engine,
                     SlidingCombine(op, along, inside, seen), begins=True, motion=STEP)
