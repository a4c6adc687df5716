"""Who took whose token: known from the program alone, whatever its timing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...isa.instructions import Engine
from ...isa.program import Program, engines_of


class Token(NamedTuple):
    """A token that is taken: the positions of the instructions that post it and wait for it."""

    poster: int
    taker: int
    giver: Engine               # that posts it


def tokens_of(program: Program) -> Iterator[Token]:
    """All tokens that are taken, counter by counter.

    A counter has one engine that posts and one that takes, both in order, so the k-th wait takes
    the k-th post.
    """
    engines = engines_of(program)
    posts, waits = program.code["post"], program.code["wait"]
    for giver in Engine:
        for taker in Engine:
            posters = np.flatnonzero((engines == giver) & (posts >> taker & 1 == 1))
            takers = np.flatnonzero((engines == taker) & (waits >> giver & 1 == 1))
            for pair in zip(posters.tolist(), takers.tolist(), strict=False):
                yield Token(*pair, giver)
