"""Stages: how one tensor is computed, and the primitives that change it.

A stage starts as plain loops over the tensor's axes, then its reduce axes. Each primitive shows
what it does, before → after, and refuses to change the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import CompileError
from ..expression.expression import (
    FLOATS,
    Axis,
    Binary,
    Cast,
    Constant,
    Element,
    Expression,
    Reduction,
    Select,
)
from ..expression.rewrite import substitute
from ..expression.scalars import whole
from ..expression.tensor import Tensor
from ..nest.nest import DMA, LOADED, LoopKind, Scope

MOST_LANES = 64


@dataclass(frozen=True)
class Split:
    """parent = outer × factor + inner"""

    parent: Axis
    outer: Axis
    inner: Axis


@dataclass(frozen=True)
class Fuse:
    """outer = fused // inner's extent, inner = fused % inner's extent"""

    outer: Axis
    inner: Axis
    fused: Axis


@dataclass(eq=False)
class Stage:
    """How one tensor is computed."""

    tensor: Tensor
    leaves: list[Axis]                                  # the loops, from the outside in
    relations: list[Split | Fuse] = field(default_factory=list)
    kinds: dict[Axis, LoopKind] = field(default_factory=dict)
    scope: Scope = Scope.DRAM
    attach: tuple[Stage, Axis] | None = None            # computed inside this loop; None: before
    inlined: bool = False
    intrinsic: tuple[Axis, str] | None = None           # the loops from here on are this one
    copies: int = 1                                     # buffers that take turns
    tile_rows: int = 0                                  # rows of a tile, if addressed one by one
    uncut: list[Axis] = field(default_factory=list)     # computed whole where a part would do
    over: Tensor | None = None                          # computed in the buffer of this one
    multiplies_and_adds: bool = False                   # sums of products are rounded once a term

    def split(self, axis: Axis, factor: int) -> tuple[Axis, Axis]:
        """Make two loops of one.

            for i in 20:                for i.outer in 5:
                y[i]            →           for i.inner in 4:
                                                y[i.outer × 4 + i.inner]

        Where the factor does not divide the extent, the last outer iteration is cut short by a
        condition.
        """
        place = self._place(axis)
        factor = whole(factor, f"{self}: the factor by which axis {axis} is split")
        outer = Axis(f"{axis.name}.outer", -(-axis.extent // factor), axis.reduces)
        inner = Axis(f"{axis.name}.inner", min(factor, axis.extent), axis.reduces)
        self.leaves[place:place + 1] = [outer, inner]
        self.relations.append(Split(axis, outer, inner))
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
        for each lane are to be a tensor of their own.
        """
        self._place(axis)
        self._check_independent(axis, "lanes of a vector")
        if axis.extent > MOST_LANES:
            raise CompileError(f"{self}: {axis} has {axis.extent} iterations, more than the "
                               f"{MOST_LANES} lanes of a vector; split it first")
        self.kinds[axis] = LoopKind.VECTORIZED

    def _check_independent(self, axis: Axis, what: str) -> None:
        if axis.reduces:
            raise CompileError(f"{self}: {axis} is reduced over: its iterations add to the same "
                               f"sums and cannot be {what}")

    def multiply_add(self) -> None:
        """Add each product of a sum with a single rounding, by the instruction that multiplies and
        adds. This changes results of floats, to more exact ones.

            y[i] = y[i] + x[k] × w[k]    →    y[i] = fma(x[k], w[k], y[i])
        """
        body = self.tensor.body
        if not (isinstance(body, Reduction) and body.combiner == "+" and body.dtype in FLOATS
                and isinstance(body.value, Binary) and body.value.operator == "*"):
            raise CompileError(f"{self} is not a sum of products of floats, which multiply_add "
                               f"takes")
        self.multiplies_and_adds = True

    def double_buffer(self, axis: Axis) -> None:
        """Give what is computed inside a loop of the reader two buffers that take turns: the next
        iteration's is loaded while this one's is used."""
        if self.attach is None or axis not in self.attach[0].leaves:
            raise CompileError(f"{self}: {axis} is not a loop of the stage that it is computed in; "
                               f"use compute_at first")
        self.copies = max(self.copies, 2)

    def keep(self, copies: int) -> None:
        """Keep several buffers for what is computed inside a loop of the reader. A copy of an input
        that is still in one of them is not loaded again.

            for y: for c in 4: load w[c]; …    →    load w[0] … w[3]; for y: for c in 4: …

        if four are kept: each is loaded just before its first use.
        """
        self.copies = whole(copies, f"{self}: the number of copies that are kept")

    def compute_at(self, reader: Stage, axis: Axis) -> None:
        """Compute just what a loop of the reader needs, inside that loop.

            for i: x[i] = …                 for i:
            for i: y[i] = f(x[i])    →          x[0] = …
                                                y[i] = f(x[0])

        Lowering refuses it if the reader, with what is inlined in it, does not read this tensor.
        """
        reader._place(axis)
        self.attach = reader, axis

    def compute_in_place(self, source: Tensor) -> None:
        """Write each element where one of the source was, which nobody needs any more.

            x.acc[i] = …; y.acc[i] = x.acc[i] + 1    →    x.acc[i] = …; x.acc[i] = x.acc[i] + 1

        Both are computed in the same loop, and this is the only one that reads the source, element
        by element; lowering refuses anything else.
        """
        self.over = source

    def compute_inline(self) -> None:
        """Put the body in place of every element that is read.

            x[i] = a[i] + 1; y[i] = x[i] × 2    →    y[i] = (a[i] + 1) × 2
        """
        if isinstance(self.tensor.body, Reduction):
            raise CompileError(f"{self} is a reduction and cannot be inlined: every reader would "
                               f"have to compute it again")
        self.inlined = True

    def tensorize(self, axis: Axis, intrinsic: str) -> None:
        """Turn the loops from this one inwards into one hardware intrinsic. Whether they match it
        is checked after the schedule is lowered; a mismatch is explained."""
        self._place(axis)
        self.intrinsic = axis, intrinsic

    def dma(self, axis: Axis) -> None:
        """Turn the loops from this one inwards, of a copy between DRAM and a scratchpad, into
        transfers: one, or as few as possible.

            for c in 4: for y in 6:              for c in 4:
                x.inp[c, y] = x[c, y]    →           copy x.inp[c, 0 :+ 6] from x[c, 0 :+ 6]

        Copies without this mark become transfers too where they can. If marked ones cannot,
        `form_transfers` says why.
        """
        self._place(axis)
        source = self._copied()
        ways = ", ".join(scope.value for scope in LOADED)
        if self.scope not in (*LOADED, Scope.DRAM) or (
                self.scope == Scope.DRAM and source.body is None):
            raise CompileError(f"{self} is a copy of {source.name} in {self.scope.value}, which is "
                               f"not a transfer; dma takes copies from dram to {ways} (cache_read) "
                               f"and back (cache_write)")
        self.intrinsic = axis, DMA

    def _copied(self) -> Tensor:
        """The tensor that this stage copies, perhaps with padding or widened."""
        value = self.tensor.body
        if isinstance(value, Select) and isinstance(value.otherwise, Constant):
            value = value.then
        if isinstance(value, Cast) and self.scope == Scope.ACC:
            value = value.value
        if not isinstance(value, Element):
            raise CompileError(f"{self} computes {value}, which is not a copy; dma takes "
                               f"what cache_read and cache_write make")
        return value.tensor

    def compute_whole(self, *axes: Axis) -> None:
        """Compute some axes of the tensor completely, even where a part of them would do: tiles are
        always loaded whole.

            y[i, j] = x.inp[i, j] for j in 4    →    x.inp[i] has all the lanes of x
        """
        self.uncut += axes

    def address_rows(self, tile_rows: int) -> None:
        """Let instructions address rows of the last dimension one by one, as depthwise gemms do
        with weights. They are loaded in tiles of `tile_rows` rows.

            w.wgt[c, 9 rows, 16]    →    w.wgt[c, 16 rows, 16], a tile for each c
        """
        rows = self.tensor.shape[-2]
        self.tile_rows = whole(tile_rows, f"{self}: the number of rows in a tile")
        if rows % self.tile_rows:
            raise CompileError(f"{self}: {rows} rows are not whole tiles of {tile_rows} rows")
        self.compute_whole(*self.tensor.axes[-2:])

    def check_mark(self) -> None:
        """Refuse a mark whose loop no longer exists: it would have no effect."""
        if self.intrinsic is not None and self.intrinsic[0] not in self.leaves:
            axis, name = self.intrinsic
            raise CompileError(f"{self}: {axis} was to be the first loop of {name}, but was split "
                               f"or fused afterwards; mark one of {self._order()}")

    def _place(self, axis: Axis) -> int:
        if axis not in self.leaves:
            raise CompileError(f"{self}: {axis} is not one of its loops: {self._order()}")
        return self.leaves.index(axis)

    def _order(self) -> str:
        return ", ".join(map(str, self.leaves))

    def __str__(self) -> str:
        return f"stage {self.tensor.name}"

    def values(self) -> dict[Axis, Expression]:
        """Every axis that was split or fused, in terms of the loops."""
        found: dict[Axis, Expression] = {}
        for relation in reversed(self.relations):
            if isinstance(relation, Split):
                found[relation.parent] = (relation.outer * relation.inner.extent + relation.inner)
            else:
                extent = relation.inner.extent
                found[relation.outer] = relation.fused // extent
                found[relation.inner] = relation.fused % extent
        for axis in list(reversed(found)):
            found[axis] = substitute(found[axis], found)
        return found
