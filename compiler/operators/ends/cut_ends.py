"""The first and last instructions of a program, cut into pieces that engines hand on sooner.

A step loads, multiplies, requantizes and stores, each as a whole. Between steps that costs nothing:
others are under way. At both ends of a program it does, for nobody has anything else to do:

    load ────────►                          load ─►─►─►
                  gemm ────────►       →        gemm ─►─►─►

So the first product and what is loaded for it are cut, and the last one with what becomes of its
sums. Everything happens in the order that it had for each tile, and tokens follow from the data.
What is in between does not know. Pieces of a product have micro-ops of their own.

This is for programs that run alone. In a stream, other layers are under way at the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import prod

from ....isa.program import Program
from .cut_first import cut_first
from .cut_last import cut_last

MOST_PIECES = 8                     # of the first product
COUNTS = (1, 2, 4, 8)               # pieces of one of its operands
FIRST = [each for each in product(COUNTS, COUNTS) if 1 < prod(each) <= MOST_PIECES]
LAST = COUNTS[1:]                   # pieces of the last results


def cut_ends(program: Program, cost: Callable[[Program], int]) -> Program:
    """The program with ends cut as finely as makes it fastest; the same if nothing does."""
    def fastest(found: Iterable[Program | None], best: Program) -> Program:
        return min((best, *(each for each in found if each is not None)), key=cost)

    last = fastest((cut_last(program, count) for count in LAST), program)
    return fastest((cut_first(last, *counts) for counts in FIRST), last)
