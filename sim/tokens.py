"""Twin of hw.tokens: one counter for each ordered pair of engines, giver × 4 + taker."""

from __future__ import annotations

from typing import Any

import numba

from ..isa.instructions import Engine
from .unit import Registers

ENGINES = len(Engine)

# `moved` counts tokens posted and taken: it tells that a counter has changed.
REGISTERS = Registers(same=("moved",), storage={"count": ENGINES ** 2})


@numba.njit(forceinline=True)
def missing(tokens: Any, taker: int, wait: int) -> Any:
    """The engines in `wait` whose tokens are not there."""
    lacking = 0
    if wait:
        for giver in range(ENGINES):
            if wait >> giver & 1 and tokens.count[giver * ENGINES + taker] == 0:
                lacking |= 1 << giver
    return lacking


@numba.njit(forceinline=True)
def take(tokens: Any, code: Any, taker: int, started: int) -> None:
    """Take what an instruction that starts, if one does, waited for. `post` comes after: a post
    to a full counter that is taken from in the same cycle does not overflow."""
    if started < 0 or code[started].wait == 0:
        return
    for giver in range(ENGINES):
        if code[started].wait >> giver & 1:
            tokens.count[giver * ENGINES + taker] -= 1
            tokens.moved += 1


@numba.njit(forceinline=True)
def post(tokens: Any, code: Any, giver: int, ended: int, limit: int) -> Any:
    """Post what an instruction that ends gives. Returns the giver, as a set, if one is too many."""
    overflow = 0
    if ended < 0 or code[ended].post == 0:
        return overflow
    for taker in range(ENGINES):
        if code[ended].post >> taker & 1:
            if tokens.count[giver * ENGINES + taker] == limit:
                overflow = 1 << giver
            else:
                tokens.count[giver * ENGINES + taker] += 1
                tokens.moved += 1
    return overflow
