"""Stages: how one tensor is computed, and the primitives that change it.

A stage starts as plain loops over the tensor's axes, then its reduce axes. Primitives that change
the loops are in `loops`; those here say where a tensor lies, when it is computed, and by what. Each
shows what it does, before → after, and refuses to change the result.
"""

from __future__ import annotations

from dataclasses import field

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from ..expression.expression import (
    FLOATS,
    Axis,
    Binary,
    Cast,
    Constant,
    Element,
    Reduction,
    Select,
)
from ..expression.scalars import check_integer
from ..expression.tensor import Tensor
from ..nest.nest import DMA, LOADED, Scope
from .loops import Loops


@dataclass(eq=False)
class Stage(Loops):
    """How one tensor is computed: its loops, where it lies, and when it is computed."""

    scope: Scope = Scope.DRAM
    attach: tuple[Stage, Axis] | None = None            # computed inside this loop; None: before
    inlined: bool = False
    intrinsic: tuple[Axis, str] | None = None           # the loops from here on are this one
    copies: int = 1                                     # buffers that take turns
    period: int = 0                                     # contents that come again in this order
    ahead: bool = False                                 # computed one iteration before it is read
    tile_rows: int = 0                                  # rows of a tile, if addressed one by one
    uncut: list[Axis] = field(default_factory=list)     # computed whole where a part would do
    over: Tensor | None = None                          # computed in the buffer of this one
    border: str = ""                                    # the intrinsic that fills it
    sliding: Axis | None = None                         # along which it is computed only once
    multiplies_and_adds: bool = False                   # sums of products are rounded once a term

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

    def compute_ahead(self) -> None:
        """In the loop of the reader that this is computed in, compute it, and whatever is computed
        there before it, one iteration ahead. Engines work in order: one that this waits for is busy
        with the next iteration meanwhile.

            for i: x = A(i); B(x)    →    x = A(0); for i: x' = A(i + 1); B(x); x = x'
        """
        if self.attach is None or self.copies < 2:
            raise CompileError(f"{self} is not computed in a loop of its reader with two buffers; "
                               f"use compute_at and double_buffer first")
        reader, axis = self.attach
        reader._check_independent(axis, "an iteration ahead")
        self.ahead = True

    def keep(self, copies: int, period: int = 0) -> None:
        """Keep several buffers for what is computed inside a loop of the reader. A copy of an input
        that is still in one of them is not loaded again.

            for y: for c in 4: load w[c]; …    →    load w[0] … w[3]; for y: for c in 4: …

        if four are kept: each is loaded just before its first use. Where contents come again in the
        same order after a `period` of more than that, those that have waited longest are the next
        to be used. So as many contents of each period as there are copies, but for two, stay where
        they are; the others take turns in two.
        """
        self.copies = check_integer(copies, f"{self}: the number of copies that are kept")
        self.period = period if period > self.copies > 2 else 0

    @property
    def is_part(self) -> bool:
        return self.attach is not None

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

    def slide(self, axis: Axis) -> None:
        """In the loop of the reader that this is computed in, compute only what the iteration
        before has not computed, along one axis of the tensor; keep the rest.

            for i: x[i :+ 6] = …                      for i: x[i + 2 :+ 4] = …
                y[4 i :+ 4] = f(x[i :+ 6])    →           y[4 i :+ 4] = f(x[i :+ 6])

        What the first iteration needs from before must lie outside the tensor: `split` it late.
        """
        if self.attach is None:
            raise CompileError(f"{self} is not computed in a loop of its reader; use compute_at "
                               f"first")
        self.sliding = axis

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

    def fill_border(self, intrinsic: str) -> None:
        """Compute what a select chooses, and the constant around it, apart: intrinsics have no
        conditions of their own.

            for y: x[y] = select(1 <= y, f(y), 5)    →    for y: if 1 <= y: x[y] = f(y)
                                                          for y: if y < 1: x[y] = 5

        `tensorize` says what computes the first; what fills is named here.
        """
        body = self.tensor.body
        if not isinstance(body, Select) or not isinstance(body.otherwise, Constant):
            raise CompileError(f"{self} has no border: it is not a select between something and a "
                               f"constant")
        self.border = intrinsic

    def dma(self, axis: Axis) -> None:
        """Turn the loops from this one inwards, of a copy between DRAM and a scratchpad, into
        transfers: one, or as few as possible.

            for c in 4: for y in 6:              for c in 4:
                x.inp[c, y] = x[c, y]    →           copy x.inp[c, 0 :+ 6] from x[c, 0 :+ 6]

        Copies without this mark become transfers too where they can. If marked ones cannot,
        `form_transfers` says why.
        """
        self._place(axis)
        source = self._copied_tensor()
        ways = ", ".join(scope.value for scope in LOADED)
        if self.scope not in (*LOADED, Scope.DRAM) or (
                self.scope == Scope.DRAM and source.body is None):
            raise CompileError(f"{self} is a copy of {source.name} in {self.scope.value}, which is "
                               f"not a transfer; dma takes copies from dram to {ways} (cache_read) "
                               f"and back (cache_write)")
        self.intrinsic = axis, DMA

    def _copied_tensor(self) -> Tensor:
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
        self.tile_rows = check_integer(tile_rows, f"{self}: the number of rows in a tile")
        if rows % self.tile_rows and self.tile_rows % rows:
            raise CompileError(f"{self}: {rows} rows are neither whole tiles of {tile_rows} rows, "
                               f"nor an even part of one")
        self.compute_whole(*self.tensor.axes[-2:])

    def check_mark(self) -> None:
        """Refuse a mark whose loop no longer exists: it would have no effect."""
        if self.intrinsic is not None and self.intrinsic[0] not in self.leaves:
            axis, name = self.intrinsic
            raise CompileError(f"{self}: {axis} was to be the first loop of {name}, but was split "
                               f"or fused afterwards; mark one of {self._order()}")
