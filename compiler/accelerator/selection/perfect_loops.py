"""Loops around one assignment: an intrinsic or a transfer, perhaps, or the reason why not."""

from __future__ import annotations

from typing import NamedTuple

from ...expression.expression import Axis, Expression
from ...expression.intervals import conjuncts
from ...nest.nest import Assign, Loop, LoopKind, Statement, When


class MismatchError(Exception):
    """Why loops are not what they are meant to be."""


class PerfectLoops(NamedTuple):
    """Loops from the outside in, the conditions inside them, and the assignment inside these."""

    loops: list[Loop]
    conditions: list[Expression]
    assign: Assign

    @property
    def axes(self) -> list[Axis]:
        return [loop.axis for loop in self.loops]

    @property
    def threads(self) -> list[Axis]:
        return [loop.axis for loop in self.loops if loop.kind == LoopKind.THREADS]


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
    if not isinstance(statement, Assign):
        raise MismatchError(f"inside the loops over {', '.join(loop.axis.name for loop in loops)} "
                            f"is more than one assignment; mark a loop inside them")
    return PerfectLoops(loops, conditions, statement)
