"""Twin of hw.tokens: one counter for each ordered pair of engines, giver × 4 + taker."""

from __future__ import annotations

from ...isa.instructions import Engine
from .record_types import Code, Unit
from .registers import Registers, inline

ENGINES = len(Engine)

# `there` has a bit for each counter, taker × 4 + giver, that is not zero. `most` is the highest
# value of each so far, which the hardware does not record.
REGISTERS = Registers(noted=("there",),
                      storage={"count": ENGINES ** 2, "most": ENGINES ** 2})


@inline
def missing_tokens(tokens: Unit, taker: int, wait: int) -> int:
    """The engines in `wait` whose tokens are missing."""
    return wait & ~(tokens.there >> taker * ENGINES) & (1 << ENGINES) - 1


@inline
def take(tokens: Unit, code: Code, taker: int, started: int) -> None:
    """Take the tokens of the instruction that starts, if one does. `post` comes after it: a post to
    a full counter does not overflow if a token is taken in the same cycle."""
    if started < 0 or code[started].wait == 0:
        return
    for giver in range(ENGINES):
        if code[started].wait >> giver & 1:
            tokens.count[giver * ENGINES + taker] -= 1
            if tokens.count[giver * ENGINES + taker] == 0:
                tokens.there &= ~(1 << taker * ENGINES + giver)


@inline
def post(tokens: Unit, code: Code, giver: int, ended: int, limit: int) -> int:
    """Post the tokens of the instruction that ends, if one does. Returns the giver, as a set, if a
    counter overflows."""
    overflow = 0
    if ended < 0 or code[ended].post == 0:
        return overflow
    for taker in range(ENGINES):
        if code[ended].post >> taker & 1:
            counter = giver * ENGINES + taker
            if tokens.count[counter] == limit:
                overflow = 1 << giver
            else:
                tokens.count[counter] += 1
                tokens.most[counter] = max(tokens.most[counter], tokens.count[counter])
                tokens.there |= 1 << taker * ENGINES + giver
    return overflow
