"""The loops of a stage, and the primitives that change them.

Each shows what it does, before → after, and refuses to change the result.
"""

from __future__ import annotations

from dataclasses import field

from ...base.classes.dataclass import dataclass, unguarded
from ..errors import CompileError
from ..expression.expression import Axis, Expression, Reduction
from ..expression.rewrite import substitute
from ..expression.scalars import LARGEST, check_integer
from ..expression.tensor import Tensor
from ..nest.nest import LoopKind

MOST_LANES = 64


@unguarded(frozen=True)
class Split:
    """parent = outer × factor + inner - late, or min(outer × factor, extent - factor) + inner"""

    parent: Axis
    outer: Axis
    inner: Axis
    late: int = 0
    overlaps: bool = False


@unguarded(frozen=True)
class Fuse:
    """outer = fused // inner's extent, inner = fused % inner's extent"""

    outer: Axis
    inner: Axis
    fused: Axis


@dataclass(eq=False)
class Loops:
    """The loops that compute a tensor."""

    tensor: Tensor
    leaves: list[Axis]                                  # from the outside in
    relations: list[Split | Fuse] = field(default_factory=list)
    kinds: dict[Axis, LoopKind] = field(default_factory=dict)

    @property
    def is_part(self) -> bool:
        """Whether only some of the iterations are computed at a time."""
        return False

    def split(self, axis: Axis, factor: int, late: int = 0) -> tuple[Axis, Axis]:
        """Make two loops of one.

            for i in 20:                for i.outer in 5:
                y[i]            →           for i.inner in 4:
                                                y[i.outer × 4 + i.inner]

        Where the factor does not divide the extent, the last outer iteration is cut short by a
        condition. So is the first, which begins `late` iterations before the axis does: a stage
        that slides has something to begin with then.
        """
        place = self._place(axis)
        if type(factor) is not int or not 0 < factor <= LARGEST:        # as hardly ever
            factor = check_integer(factor, f"{self}: the factor by which axis {axis} is split")
        outer = Axis(f"{axis.name}.outer", -(-(axis.extent + late) // factor), axis.reduces)
        inner = Axis(f"{axis.name}.inner", min(factor, axis.extent), axis.reduces)
        self.leaves[place:place + 1] = [outer, inner]
        self.relations.append(Split(axis, outer, inner, late))
        return outer, inner

    def split_overlapping(self, axis: Axis, factor: int) -> tuple[Axis, Axis]:
        """Make two loops of one, without a condition: where the factor does not divide the extent,
        the last iteration begins earlier, and computes some elements again.

            for i in 18:                for i.outer in 3:
                y[i]            →           for i.inner in 8:
                                                y[min(i.outer × 8, 10) + i.inner]
        """
        if isinstance(self.tensor.body, Reduction) or not 0 < factor <= axis.extent:
            raise CompileError(f"{self}: {axis} of {axis.extent} cannot be split into overlapping "
                               f"parts of {factor}: it takes as many, and no reduction")
        outer, inner = self.split(axis, factor)
        self.relations[-1] = Split(axis, outer, inner, overlaps=True)
        return outer, inner

    def tile(self, first: Axis, second: Axis, first_factor: int,
             second_factor: int) -> tuple[Axis, Axis, Axis, Axis]:
        """Split two neighbouring loops and put the outer ones first.

            for i, j in 8, 8    →    for i.outer, j.outer in 2, 2: for i.inner, j.inner in 4, 4
        """
        first_outer, first_inner = self.split(first, first_factor)
        second_outer, second_inner = self.split(second, second_factor)
        self.reorder(first_outer, second_outer, first_inner, second_inner)
        return first_outer, second_outer, first_inner, second_inner

    def fuse(self, outer: Axis, inner: Axis) -> Axis:
        """Make one loop of two that are directly inside each other.

            for i in 4:
                for j in 5:     →       for i.j in 20:
                    y[i, j]                 y[i.j // 5, i.j % 5]
        """
        place = self._place(outer)
        if self.leaves[place + 1:place + 2] != [inner]:
            raise CompileError(f"{self}: {inner} is not the loop directly inside {outer}; the "
                               f"order is {self._order()}")
        if outer.reduces != inner.reduces:
            raise CompileError(f"{self}: {outer} and {inner} cannot be fused: one of them is "
                               f"reduced over, the other is not")
        fused = Axis(f"{outer.name}.{inner.name}", outer.extent * inner.extent, outer.reduces)
        self.leaves[place:place + 2] = [fused]
        self.relations.append(Fuse(outer, inner, fused))
        return fused

    def reorder(self, *axes: Axis) -> None:
        """Put loops in the given order, at the places that they have now.

            for i: for j: y[i, j]    →    for j: for i: y[i, j]

        Any order gives the same result: iterations of space axes are independent, and integer sums,
        minima and maxima do not depend on order. Sums of floats do, and keep theirs.
        """
        places = sorted(self._place(axis) for axis in axes)
        if len(set(axes)) != len(axes):
            raise CompileError(f"{self}: an axis is named twice in the new order")
        self._check_reorder(axes)
        for place, axis in zip(places, axes, strict=True):
            self.leaves[place] = axis

    def _check_reorder(self, axes: tuple[Axis, ...]) -> None:
        if self.tensor.dtype.startswith("float") and isinstance(self.tensor.body, Reduction):
            before = [axis for axis in self.leaves if axis in axes and axis.reduces]
            if before != [axis for axis in axes if axis.reduces]:
                raise CompileError(f"{self}: sums of {self.tensor.dtype} depend on their order, so "
                                   f"{', '.join(map(str, before))} must stay in order")

    def unroll(self, axis: Axis) -> None:
        """Write out the iterations of a loop one by one."""
        self._place(axis)
        self.kinds[axis] = LoopKind.UNROLLED

    def bind_threads(self, axis: Axis) -> None:
        """Turn the iterations of a loop into virtual threads: each has its own part of the
        scratchpads, and they are interleaved so that one loads while another computes.

            threads t in 2:  A(t); B(t)    →    A(0); A(1); B(0); B(1)
        """
        self._place(axis)
        self._check_independent(axis, "threads")
        self.kinds[axis] = LoopKind.THREADS

    def parallel(self, axis: Axis) -> None:
        """Let the CPU's threads share the iterations of the outermost loop, or, if they share
        those already, of the one directly inside. Each has buffers of its own for what is computed
        inside.

            for i in 64: y[i]    →    thread 0: for i in 0 … 31: y[i]; thread 1: for i in 32 … 63
        """
        place = self._place(axis)
        if any(self.kinds.get(each) != LoopKind.PARALLEL for each in self.leaves[:place]):
            raise CompileError(f"{self}: {axis} is not its outermost loop, {self.leaves[0]}, which "
                               f"is the one that threads share, nor one directly inside others "
                               f"that they share")
        self._check_independent(axis, "parallel")
        self.kinds[axis] = LoopKind.PARALLEL

    def vectorize(self, axis: Axis) -> None:
        """Compute all iterations of a loop at once, as lanes of one vector of the CPU.

            for i.inner in 4: y[i.inner]    →    y[0 … 3]

        A sum is not split into lanes by this, for that would change the order of its terms: sums
        for each lane are to be a tensor of their own. In a loop of its reader, a stage has only the
        iterations that the loop needs, which lowering knows.
        """
        self._place(axis)
        self._check_independent(axis, "lanes of a vector")
        if not self.is_part and axis.extent > MOST_LANES:
            raise CompileError(f"{self}: {axis} has {axis.extent} iterations, more than the "
                               f"{MOST_LANES} lanes of a vector; split it first")
        self.kinds[axis] = LoopKind.VECTORIZED

    def _check_independent(self, axis: Axis, what: str) -> None:
        if axis.reduces:
            raise CompileError(f"{self}: {axis} is reduced over: its iterations add to the same "
                               f"sums and cannot be {what}")

    def _place(self, axis: Axis) -> int:
        try:
            return self.leaves.index(axis)
        except ValueError:
            raise CompileError(f"{self}: {axis} is not one of its loops: "
                               f"{self._order()}") from None

    def _order(self) -> str:
        return ", ".join(map(str, self.leaves))

    def __str__(self) -> str:
        return f"stage {self.tensor.name}"

    def values(self) -> dict[Axis, Expression]:
        """Every axis that was split or fused, in terms of the loops."""
        found: dict[Axis, Expression] = {}
        for relation in reversed(self.relations):
            if isinstance(relation, Split):
                found[relation.parent] = (relation.outer * relation.inner.extent + relation.inner
                                          - relation.late)
            else:
                extent = relation.inner.extent
                found[relation.outer] = relation.fused // extent
                found[relation.inner] = relation.fused % extent
        for axis in list(reversed(found)):
            found[axis] = substitute(found[axis], found)
        return found
