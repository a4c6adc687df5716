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
from typing import TypeAlias

from ....isa.program import Program
from .cut_first import cut_first
from .cut_last import cut_last

Ends: TypeAlias = tuple[int, int, int]      # pieces of the last results, and of data and weights of
                                            # the first product

WHOLE: Ends = (1, 1, 1)
MOST_PIECES = 8                     # of the first product
COUNTS = (1, 2, 4, 8)               # pieces of one of its operands
FIRST = [each for each in product(COUNTS, COUNTS) if 1 < prod(each) <= MOST_PIECES]
LAST = COUNTS[1:]                   # pieces of the last results


def best_ends(program: Program, cost: Callable[[Program], int]) -> Ends:
    """The ends that make the program fastest; whole ones if no others do."""
    def fastest(best: Ends, ways: Iterable[Ends]) -> Ends:
        return min((best, *(each for each in ways if cut_ends(program, each) is not program)),
                   key=lambda ends: cost(cut_ends(program, ends)))

    last = fastest(WHOLE, ((count, 1, 1) for count in LAST))
    return fastest(last, ((last[0], *counts) for counts in FIRST
                          if cut_first(program, *counts) is not None))


def cut_ends(program: Program, ends: Ends) -> Program:
    """The program with ends in so many pieces; an end that cannot be cut so stays as it is."""
    last, data, weights = ends
    if last > 1:
        program = cut_last(program, last) or program
    return (cut_first(program, data, weights) if data * weights > 1 else None) or program
