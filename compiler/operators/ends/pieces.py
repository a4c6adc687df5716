"""Pieces of products: which tiles they walk over, and micro-ops of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ....isa.instructions import (
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Window,
)
from ....isa.program import Program
from ....isa.stream import Stream, join, positions_of
from ....isa.verification.derive_tokens import with_tokens

LONG = 64                           # instructions at an end that are looked at
FIRST = (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_INNER)

Product: TypeAlias = Gemm | Window
Triple: TypeAlias = tuple[int, int, int]
Range: TypeAlias = tuple[int, int]
Words: TypeAlias = npt.NDArray[np.uint16]
Tiles: TypeAlias = npt.NDArray[np.int64]


def pieces_of(extent: int, count: int) -> list[Range]:
    """Nearly equal parts, none of them empty."""
    ends = [extent * number // count for number in range(count + 1)]
    return list(pairwise(ends))


def replace_at(place: int, value: int, numbers: Triple) -> Triple:
    found = list(numbers)
    found[place] = value
    return found[0], found[1], found[2]


def is_free(first: Product, loop: int) -> bool:
    """Whether iterations of a loop add to sums of their own."""
    inner = isinstance(first, Window) and loop == len(first.loops) - 1
    return bool(first.dst_stride[loop]) and not inner and not first.flags & FIRST[loop]


def tiles_of(first: Tiles, extents: Sequence[int], steps: Sequence[int]) -> Tiles:
    """All tiles that loops come to."""
    for extent, step in zip(extents, steps, strict=True):
        first = np.unique(first[:, None] + step * np.arange(extent))
    return first


class MicroOps:
    """The micro-ops of a program, and those of pieces, in a part of the scratchpad that the program
    does not use."""

    def __init__(self, program: Program) -> None:
        self.old, self.config = program, program.config
        data = program.segments[0].data
        assert data is not None, "micro-ops are known"
        self.words: Words = data.view(np.uint16).reshape(-1, MicroOp.size // 2)
        self.loads = [(int(position), int(each["sram"]), int(each["offset"]) // MicroOp.size,
                       prod(map(int, each["shape"])))
                      for position, each in zip(*positions_of(program.code, Load), strict=True)
                      if each["buffer"] == Buffer.UOP]
        self.free = max((sram + count for _, sram, _, count in self.loads), default=0)
        self.more: list[Words] = []

    def words_of(self, of: Product, position: int) -> Words | None:
        """The micro-ops of the product at a position, which were loaded last before it; None if it
        starts sums from others, or they came in several loads."""
        own = range(of.uop, of.uop + (of.count if isinstance(of, Gemm) else 1))
        before = [(sram, offset, count) for place, sram, offset, count in self.loads
                  if place < position and sram < own.stop and own.start < sram + count]
        if not before or of.flags & GemmFlags.BIAS:
            return None
        sram, offset, count = before[-1]
        if own.start < sram or sram + count < own.stop:
            return None
        return self.words[offset - sram + own.start:offset - sram + own.stop]

    def has_room(self, words: Words, copies: int) -> bool:
        return self.free + copies * len(words) <= self.config.tiles(Buffer.UOP)

    def piece(self, of: Product, words: Words, begin: Triple,
              loops: Triple) -> Iterator[Instruction]:
        """A piece of a product, which begins at some iterations of its loops, after the load of its
        micro-ops. The first has those of the product."""
        if not any(begin):
            yield replace(of, loops=loops)
            return
        steps = [sum(map(int.__mul__, begin, strides))
                 for strides in (of.dst_stride, of.src_stride, of.wgt_stride)]
        place = len(self.words) + sum(map(len, self.more))
        self.more.append((words + np.array([*steps, 0])).astype(np.uint16))
        yield Load(buffer=Buffer.UOP, segment=0, sram=self.free, offset=place * MicroOp.size,
                   shape=(1, 1, len(words)))
        yield replace(of, uop=self.free, loops=loops)
        self.free += len(words)

    def program(self, code: Sequence[Stream]) -> Program:
        """The program with other code, and tokens for it."""
        first, *others = self.old.segments
        data = np.concatenate([self.words, *self.more]).reshape(-1).view(np.uint8)
        segments = (replace(first, size=len(data), data=data), *others)
        return with_tokens(replace(self.old, code=join(code), segments=segments))
