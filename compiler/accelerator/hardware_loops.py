"""Loops around one intrinsic as instructions: which loops the hardware runs, and which not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ...isa.instructions import LOOPS
from ..errors import CompileError
from ..expression.affine import Affine
from ..expression.expression import Axis

HARDWARE_LOOPS = len(LOOPS)
MOST_INSTRUCTIONS = 1 << 20     # of a program, which are 32 MiB


@dataclass(frozen=True)
class Walk:
    """A loop of the hardware: its iterations, and how far each operand moves in one."""

    count: int
    steps: tuple[int, ...]


STILL = 1                   # iterations of a loop that is not there


def fused(axes: Sequence[Axis], operands: Sequence[Affine]) -> list[Walk]:
    """Loops from the outside in, neighbours joined where they walk as one:

        for i in 4: for j in 10: t[10 × i + j]    →    for ij in 40: t[ij]
    """
    walks: list[Walk] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        inner = Walk(axis.extent, tuple(operand.of(axis) for operand in operands))
        if walks and walks[-1].steps == tuple(step * inner.count for step in inner.steps):
            walks[-1] = Walk(walks[-1].count * inner.count, inner.steps)
        else:
            walks.append(inner)
    return walks


def padded(walks: Sequence[Walk], operands: int) -> list[Walk]:
    """Three loops; those that are missing stand outside and run once."""
    still = Walk(STILL, (0,) * operands)
    return [still] * (HARDWARE_LOOPS - len(walks)) + list(walks)


def offsets(walks: Sequence[Walk], operands: int) -> Iterator[tuple[int, ...]]:
    """Where the operands are in every iteration, the last loop fastest."""
    count = prod(walk.count for walk in walks)
    if count > MOST_INSTRUCTIONS:
        raise CompileError(f"{count} iterations around an intrinsic cannot be written out: a "
                           f"program has at most {MOST_INSTRUCTIONS} instructions")
    for numbers in product(*(range(walk.count) for walk in walks)):
        yield tuple(sum(number * walk.steps[operand] for number, walk
                        in zip(numbers, walks, strict=True)) for operand in range(operands))


def divided(walks: list[Walk], most: int) -> tuple[list[Walk], list[Walk]]:
    """Loops for the program to write out, and at most so many for the hardware: the longest,
    which save the most instructions. Both in their order."""
    if len(walks) <= most:
        return [], walks
    longest = sorted(range(len(walks)), key=lambda place: -walks[place].count)[:most]
    return ([walk for place, walk in enumerate(walks) if place not in longest],
            [walk for place, walk in enumerate(walks) if place in longest])
