"""Tokens from data: the waits and posts that a stream needs, and no others.

For each instruction in program order, the walk of `order.walk` finds the last conflicting
instruction of every other engine. Where the order is not already implied by earlier tokens, that
instruction posts and this one waits. Requirements of one engine towards another only grow, so
posts and waits pair up in order, as counters without identity demand.

A counter may get more tokens than it holds, where one engine runs far ahead of another. Then some
instructions have to wait for more than their data demand, and the tokens are derived again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...base.errors import ExecutionError, VerificationError
from ..instructions import Engine
from ..program import Program, engines_of
from ..stream import check
from .order.counters import Counter, counters, most_posted, sequences_of
from .order.layout import Layout, prepare

ROUNDS = 16                 # each about halves what is too much


def with_tokens(program: Program, *, is_checked: bool = False) -> Program:
    """The program with its waits and posts replaced by those that its data demand.

        load.inp sram=0            load.inp sram=0        post=gemm
        load.inp sram=16           load.inp sram=16       post=gemm
        gemm     (reads inp 0)  →  gemm     wait=load
        gemm     (reads inp 16)    gemm     wait=load

    With `is_checked`, words are known to be instructions: they were made from some.
    """
    if not is_checked:
        check(program.code)
    code = program.code.copy()
    code["wait"] = code["post"] = 0
    try:
        layout = prepare(program.with_code(code))
    except ExecutionError as error:
        raise VerificationError(str(error)) from None
    least = np.zeros((len(code), len(Engine)), np.int64)
    for _ in range(ROUNDS):
        program, clocks = _derive(layout, least)
        if most_posted(program) <= program.config.token_limit:
            return program
        full = [each for each in counters(program, clocks)
                if each.held.max() > program.config.token_limit]
        if not full:
            return program
        for counter in full:
            _relieve(counter, sequences_of(program), least, program.config.token_limit)
        assert (least <= _complete(program)).all(), "nobody can wait for what comes later"
    raise VerificationError(f"the token counter {full[0].name} can reach {full[0].held.max()}, but "
                            f"holds {program.config.token_limit}, whatever waits are added; take "
                            f"more token_bits")


def _derive(layout: Layout,
            least: npt.NDArray[np.int64]) -> tuple[Program, npt.NDArray[np.int64]]:
    """With tokens for its data, and for `least`; and what is complete before each instruction."""
    from .order.walk import DONE, new_order

    layout.code.wait[:] = layout.code.post[:] = 0
    order = new_order(len(least), 0)
    order.least[:] = least
    end, position, _ = layout.walk(order, derive=True)
    if end != DONE:
        raise VerificationError(layout.describe_stop(end, position))
    code = layout.program.code.copy()
    code["wait"] = layout.code.wait.astype(np.uint8)
    code["post"] = layout.code.post.astype(np.uint8)
    return layout.program.with_code(code), order.clocks


def _complete(program: Program) -> npt.NDArray[np.int64]:
    """How many instructions of each engine come before each instruction."""
    mine = engines_of(program)[:, None] == np.arange(len(Engine))
    return np.asarray(np.cumsum(mine, axis=0) - mine)


def _relieve(counter: Counter, sequence: npt.NDArray[np.int64], least: npt.NDArray[np.int64],
             limit: int) -> None:
    """Ask for more, so that the counter holds less.

    Where two tokens lie there together before the first is awaited, its taker can as well wait for
    the second, which makes one of them. Where they do not, the poster has to wait for a taker.
    """
    posters, takers, done = counter.posters, counter.takers, 0
    for number in np.flatnonzero(counter.held > limit).tolist():
        oldest = max(done, number + 1 - int(counter.held[number]))
        if number - oldest < limit:
            continue                    # has become less with what was asked for already
        together = np.arange(oldest, number)
        together = together[posters[together + 1] < takers[together]]
        if len(together):
            firsts = together[together % 2 == together[0] % 2]      # no token in two pairs
            least[takers[firsts], counter.source] = sequence[posters[firsts + 1]]
            done = int(firsts[-1]) + 2
        else:
            done = number - limit // 2 + 1
            least[posters[number], counter.target] = sequence[takers[done - 1]]
