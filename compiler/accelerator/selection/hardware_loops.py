"""Loops around an intrinsic: which of them the hardware runs, and which are written out.

A nest goes through few different loops very often, so what is learned about them is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from ....isa.instructions import LOOPS
from ...errors import CompileError
from ...expression.affine import Affine
from ...expression.expression import Axis

HARDWARE_LOOPS = len(LOOPS)
MOST_INSTRUCTIONS = 1 << 20     # of a program, which are 32 MiB
REMEMBERED = 1024               # different loops

Triple = tuple[int, int, int]   # outer, middle and inner loop


class Walk(NamedTuple):
    """A loop: its iterations, and how far each operand moves from one to the next."""

    extent: int
    steps: tuple[int, ...]


Walks = tuple[Walk, ...]        # from the outside in


class Plan(NamedTuple):
    """Loops around an intrinsic as instructions: some are written out, the hardware runs three."""

    written: Walks
    counts: Triple
    strides: tuple[Triple, ...]         # of each operand, in each of the three


def walks_of(axes: Iterable[Axis], operands: Sequence[Affine]) -> Walks:
    """Loops over some axes, without those of one iteration."""
    return tuple([Walk(axis.extent, tuple([operand.terms.get(axis, 0) for operand in operands]))
                  for axis in axes if axis.extent > 1])


@lru_cache(REMEMBERED)
def fuse_loops(walks: Walks) -> Walks:
    """The same loops, neighbours joined where they walk as one:

        for i in 4: for j in 10: t[10 × i + j]    →    for ij in 40: t[ij]
    """
    joined: list[Walk] = []
    for inner in walks:
        if joined and joined[-1].steps == tuple(step * inner.extent for step in inner.steps):
            joined[-1] = Walk(joined[-1].extent * inner.extent, inner.steps)
        else:
            joined.append(inner)
    return tuple(joined)


@lru_cache(REMEMBERED)
def assign_hardware_loops(walks: Walks, operands: int) -> Plan:
    """Loops in any order: the longest go to the hardware, which saves the most instructions."""
    written, walked = split_off_longest(fuse_loops(walks), HARDWARE_LOOPS)
    return plan_of(written, walked, operands)


def plan_of(written: Walks, walked: Walks, operands: int) -> Plan:
    """Loops that are written out, and at most three for the hardware."""
    loops = pad_loops(walked, HARDWARE_LOOPS, operands)
    outer, middle, inner = loops
    return Plan(written, (outer.extent, middle.extent, inner.extent),
                tuple(zip(*(walk.steps for walk in loops), strict=True)))


def split_off_longest(walks: Walks, most: int) -> tuple[Walks, Walks]:
    """Loops to write out, and those that remain: the `most` longest. Both keep their order."""
    if len(walks) <= most:
        return (), walks
    longest = sorted(range(len(walks)), key=lambda place: -walks[place].extent)[:most]
    return (tuple(walk for place, walk in enumerate(walks) if place not in longest),
            tuple(walk for place, walk in enumerate(walks) if place in longest))


def pad_loops(walks: Walks, count: int, operands: int) -> Walks:
    """Exactly `count` loops: those that are missing are added outside and run once."""
    return (Walk(1, (0,) * operands),) * (count - len(walks)) + walks


def offsets(walks: Walks, operands: int) -> Iterator[tuple[int, ...]]:
    """How far the operands have moved in every iteration, the last loop fastest."""
    if not walks:
        yield (0,) * operands
        return
    count = prod(walk.extent for walk in walks)
    if count > MOST_INSTRUCTIONS:
        raise CompileError(f"{count} iterations around an intrinsic cannot be written out: a "
                           f"program has at most {MOST_INSTRUCTIONS} instructions")
    for numbers in product(*(range(walk.extent) for walk in walks)):
        yield tuple([sum([number * walk.steps[operand] for number, walk
                          in zip(numbers, walks, strict=True)]) for operand in range(operands)])
