"""The schedule of sums of products: blocks of them in registers, in an order that caches like.

    for stripe, column panel:                   shared by threads; the panel stays in a cache
        for tile:
            s[rows, columns] = 0                registers
            for k: s[rows, columns] += left[row, k] × right[panel, k, columns]
            y[rows, columns] = f(s[rows, columns])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....base.classes.dataclass import dataclass
from ....base.processor import Target
from ...expression.expression import FLOATS, Axis, Expression
from ...expression.tensor import Tensor, compute
from ...nest.nest import Scope
from ...schedule.schedule import Schedule
from ...schedule.stage import Stage
from ..default_schedule import arrange, is_worth_inlining
from .block import Block

WRITTEN_OUT = 128       # sums of a block, at most, that are stored one by one
ACROSS = "pixels"       # a copy of images that puts channels last


@dataclass(frozen=True)
class Sums:
    """Sums of products: each as a function of the result's axes, and how all are computed."""

    value: Callable[[tuple[Expression, ...]], Expression]
    schedule: Blocked


@dataclass(frozen=True)
class Blocked:
    """How the sums of a result are computed. Their tensor has the result's axes with rows and
    columns last, and as many of these as there are in whole blocks."""

    sums: Tensor
    row: int                        # these axes in the result
    column: int
    block: Block
    before: Sequence[int] = ()      # axes that are outside of columns; the others are inside
    unrolled: int = 0               # reduce axes that are written out, from the last one
    result: Tensor | None = None    # that is computed in blocks, if it is not the output
    dot: str = ""                   # the intrinsic for the last reduce axis, of products of bytes

    def store(self) -> Tensor:
        """The sums, as whoever reads them is to see them: where columns do not fill blocks, they
        are read one by one, which registers cannot be."""
        return compute("block", self.sums.shape, lambda *i: self.sums[i])

    def __call__(self, schedule: Schedule, target: Target) -> None:
        output, = schedule.outputs
        result = output if self.result is None else self.result
        stage, inside = schedule[result], self._block_tensors(schedule, result)
        tile = self._result(stage)
        for each in inside:
            schedule[each].compute_at(stage, tile)
            schedule[each].scope = Scope.LOCAL
            self._arrange_block(schedule[each], target)
        for each, other in schedule.stages.items():
            if each is not result and each not in inside:
                if each is not output and is_worth_inlining(each, schedule) and (
                        not _is_read(each, inside)):
                    other.compute_inline()
                elif each.name == ACROSS:
                    _arrange_across(other, target)
                else:
                    arrange(schedule, other, target)

    def _block_tensors(self, schedule: Schedule, result: Tensor) -> list[Tensor]:
        """The tensors that are computed for each block: sums, and perhaps a copy of them."""
        return [each for each in schedule.stages
                if each is self.sums or (each is not result and self.sums in each.inputs())]

    def _result(self, stage: Stage) -> Axis:
        """The loops of the result. Returns that in which a block is computed."""
        axes = list(stage.tensor.axes)
        row, column = axes[self.row], axes[self.column]
        tiles, rows = stage.split(row, self.block.rows)
        stripe, tile = stage.split(tiles, self.block.tiles)
        panel, lanes = stage.split(column, self.block.lanes)
        before = [axes[each] for each in self.before]
        after = [each for each in axes if each not in (row, column, *before)]
        stage.reorder(*before, stripe, panel, *after, tile, rows, lanes)
        # What is scaled back takes many instructions, and so do lanes that are stored one by one.
        apart = self.column != len(axes) - 1
        if not self.dot and not (apart and self.block.rows * self.block.lanes > WRITTEN_OUT):
            stage.unroll(rows)
        stage.vectorize(lanes)
        for each in (*before, stripe, panel, *after):
            stage.parallel(each)
        return tile

    def _arrange_block(self, stage: Stage, target: Target) -> None:
        *others, row, column = stage.tensor.axes
        if column.extent == self.block.lanes:       # also where the result has fewer columns
            stage.compute_whole(column)
        panel, lanes = stage.split(column, self.block.lanes)
        terms = [each for each in stage.leaves if each.reduces]
        dot = bool(terms and self.dot)
        loops = terms[:-1] if dot else terms
        stage.reorder(*others, panel, *loops, row, lanes, *(terms[-1:] if dot else ()))
        stage.unroll(row)
        if dot:
            stage.tensorize(lanes, self.dot)
        else:
            stage.vectorize(lanes)
            if terms and stage.tensor.dtype in FLOATS and target.multiplies_and_adds:
                stage.multiply_add()
        for each in loops[len(loops) - self.unrolled:]:
            stage.unroll(each)


def _is_read(tensor: Tensor, readers: Sequence[Tensor]) -> bool:
    return any(tensor in each.inputs() for each in readers)


def _arrange_across(stage: Stage, target: Target) -> None:
    """A copy with channels last of images with channels first: a few channels of a whole row, and
    then the next few, for each is in another page of memory."""
    n, y, x, c = stage.tensor.axes
    several, lanes = stage.split(c, min(c.extent, max(1, target.vector_bytes)))
    stage.reorder(n, y, several, x, lanes)
    stage.parallel(n)
    stage.parallel(y)
    if lanes.extent > 1:
        stage.vectorize(lanes)
