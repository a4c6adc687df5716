"""Rules: from the loops around an intrinsic to the instructions that compute all of them.

Every intrinsic brings one, those of the accelerator as well as those that a user declares
(examples/new_intrinsic.py). These are the accelerator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ....base.classes.dataclass import dataclass
from ....isa.instructions import WINDOW_ROWS, AluOp, Buffer, GemmFlags, Instruction, Requantize
from ...expression.affine import Affine
from ...expression.expression import Axis
from .depthwise_windows import depthwise_sums
from .instructions import PLAIN, MicroKernels, alus, fills, gemms, immediates, requantizes


@dataclass(frozen=True)
class Loops:
    """The loops around an intrinsic, and what else a rule needs to know.

    tiles       which tile each operand is, as a sum over the axes, in the order of `operands`
    kernels     the sequences of micro-ops, for what needs them
    begins      sums begin here: what accumulators hold before does not count. Only for intrinsics
                that say that they can do so
    """

    axes: Sequence[Axis]
    tiles: Sequence[Affine]
    kernels: MicroKernels
    begins: bool = False


Rule = Callable[[Loops], Iterable[Instruction]]


class Motion(NamedTuple):
    """How a rule's instructions move when its operands do.

    fields      of the instructions, each with the operand whose tile it follows. Micro-ops follow
                the first three operands
    anchors     for each operand, the one from which it always has the same distance; its own
                number if it moves freely
    multiples   by which operands that move freely may do so; others are another case
    """

    fields: tuple[tuple[str, int], ...]
    anchors: tuple[int, ...]
    multiples: tuple[int, ...]


PRODUCT = Motion((), (0, 1, 2), (1, 1, 1))
DEPTHWISE = Motion((), (0, 1, 2), (1, 1, WINDOW_ROWS))
FILL = Motion((("dst", 0),), (0,), (1,))
STEP = Motion((("dst", 0), ("lhs", 0), ("rhs", 1)), (0, 1), (1, 1))
ELEMENT_WISE = Motion((("dst", 0), ("lhs", 1), ("rhs", 2)), (0, 1, 2), (1, 1, 1))
IMMEDIATE = Motion((("dst", 0), ("src", 1)), (0, 1), (1, 1))
REQUANTIZE = Motion((("dst", 0), ("src", 1), ("params", 2)), (0, 1, 2, 2, 2), (1, 1, 1, 1, 1))


class OwnRule:
    """A rule of the accelerator's: what it says follows from its fields."""


@dataclass(frozen=True)
class Products(OwnRule):
    """Tile products; the mode says of what."""

    mode: GemmFlags = PLAIN

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        dst, src, wgt = loops.tiles
        return gemms(loops.axes, dst, src, wgt, loops.kernels, starts=loops.begins,
                     mode=self.mode)


@dataclass(frozen=True)
class DepthwiseProducts(OwnRule):
    """Products lane by lane, or windows of three taps."""

    mode: GemmFlags = PLAIN

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        dst, src, wgt = loops.tiles
        return depthwise_sums(loops.axes, dst, src, wgt, loops.kernels, starts=loops.begins,
                              mode=self.mode)


@dataclass(frozen=True)
class Fill(OwnRule):
    """Results that are all the same."""

    value: int

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        out, = loops.tiles
        return fills(loops.axes, out, self.value, Buffer.OUT)


@dataclass(frozen=True)
class ElementWise(OwnRule):
    """An operation of two tiles."""

    op: AluOp

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        result, left, right = loops.tiles
        return alus(loops.axes, self.op, result, left, right)


@dataclass(frozen=True)
class Combine(OwnRule):
    """Tiles combined into one, step by step. Where that begins, the first of them is copied, not
    combined with a constant."""

    op: AluOp

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        result, source = loops.tiles
        if not loops.begins:
            return alus(loops.axes, self.op, result, result, source)
        return _combine_from_first(self.op, loops.axes, result, source)


def _combine_from_first(op: AluOp, axes: Sequence[Axis], result: Affine,
                        source: Affine) -> Iterator[Instruction]:
    """The first step copies. Of the others, those come next in which only the last loop of the
    window has moved on, then those of the loop before it, with all steps inside."""
    window = [axis for axis in axes if not result.of(axis)]
    first = [axis for axis in axes if axis not in window]
    yield from alus(first, AluOp.MOVE, result, result, source)
    for axis in reversed([axis for axis in window if axis.extent > 1]):
        inside = window[window.index(axis) + 1:]
        rest, step = Axis(axis.name, axis.extent - 1, axis.reduces), source.of(axis)
        later = source.drop_axes(axis) + Affine(step, {rest: step} if step else {})
        yield from alus([rest if each is axis else each for each in axes
                         if each is axis or each in inside or each in first],
                        op, result, result, later)


@dataclass(frozen=True)
class Immediate(OwnRule):
    """An operation of a tile and a constant."""

    op: AluOp
    value: int

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        result, source = loops.tiles
        return immediates(loops.axes, self.op, result, source, immediate=self.value)


@dataclass(frozen=True)
class Scaling(OwnRule):
    """Requantization with the parameters of channels. `pattern` has everything but tiles and
    loops."""

    pattern: Requantize

    def __call__(self, loops: Loops) -> Iterable[Instruction]:
        result, source, *parameters = loops.tiles
        return requantizes(loops.axes, result, source, parameters, self.pattern)
