"""Loops around one assignment: an intrinsic or a transfer, perhaps, or the reason why not."""

from __future__ import annotations

from typing import NamedTuple

from ..expression.expression import Axis, Expression
from ..expression.intervals import conjuncts
from .nest import Assign, Loop, LoopKind, Statement, When


class MismatchError(Exception):
    """Why loops are not what they are meant to be."""


class PerfectLoops(NamedTuple):
    """The axes of loops from the outside in, those of them that are virtual threads, the conditions
    inside the loops, and the assignment inside these."""

    axes: list[Axis]
    threads: list[Axis]
    conditions: list[Expression]
    assign: Assign


def perfect(statement: Statement) -> PerfectLoops:
    """The loops that a statement is. Raises MismatchError if there is more inside them."""
    loops: list[Loop] = []
    while isinstance(statement, Loop):
        loops.append(statement)
        statement = statement.body
    conditions: list[Expression] = []
    if isinstance(statement, When):
        conditions = list(conjuncts(statement.condition))
        statement = statement.body
    axes = [loop.axis for loop in loops]
    if not isinstance(statement, Assign):
        raise MismatchError(f"inside the loops over {', '.join(axis.name for axis in axes)} "
                            f"is more than one assignment; mark a loop inside them")
    return PerfectLoops(axes, [loop.axis for loop in loops if loop.kind == LoopKind.THREADS],
                        conditions, statement)
