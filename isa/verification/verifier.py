"""Proves that a program cannot deadlock, race, overflow a token counter or leave its buffers.

The proof rests on two facts. Tokens order a stream independently of time (see `order.walk`), so one
walk in program order settles every interleaving. And a stream whose waits are all satisfied
by earlier posts runs to its end in program order, so with in-order engines and any queue depth it
cannot deadlock in another order either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ...base.classes.dataclass import dataclass
from ...base.errors import ExecutionError, VerificationError
from ...base.keywords import check_keywords
from ..address_map import place_windows
from ..instructions import Buffer, Engine
from ..program import Program, check_program
from ..stream import check, instruction_at
from .bounds import check_end, place_of
from .order.accesses import DRAM
from .order.conflicts import Conflict, find_conflict
from .order.counters import counters
from .order.layout import Layout, prepare

if TYPE_CHECKING:
    from .order.walk import Order

MOST_RACES = 64             # written down in one walk; the report shows the first few
MOST_FINDINGS = 4


@dataclass(frozen=True)
class Verdict:
    """What was found out. No findings: the program is safe under every timing."""

    findings: tuple[str, ...]
    instructions: int
    tokens: int = 0                 # posted over the whole program
    accesses: int = 0               # rows of the access table
    most_tokens: dict[str, int] = field(default_factory=dict)   # of each counter, at any time


@check_keywords
def verify(program: Program) -> Verdict:
    """Prove that a program cannot deadlock, race, overflow a token counter or leave its buffers,
    under any timing. Raises VerificationError with the first finding otherwise."""
    check_program(program)
    verdict = inspect(program)
    if verdict.findings:
        raise VerificationError(verdict.findings[0])
    return verdict


def inspect(program: Program) -> Verdict:
    """Everything the verifier can tell, good or bad."""
    check(program.code)
    try:
        check_end(program.code)
        place_windows(program)
        layout = prepare(program)
    except ExecutionError as error:
        return Verdict((str(error),), len(program.code))
    return _walk_program(program, layout)


def _walk_program(program: Program, layout: Layout) -> Verdict:
    from .order.walk import DONE, STARVED, new_order

    order = new_order(len(program.code), MOST_RACES)
    end, position, engine = layout.walk(order, derive=False)
    findings = list(_races(program, layout, order))
    most_tokens: dict[str, int] = {}
    if end == STARVED:
        name = Engine(engine).name.lower()
        findings.append(f"{_name_instruction(program, position)} waits for a token from {name}, "
                        f"but no earlier {name} instruction posts one that is still there: it can "
                        "wait forever")
    elif end != DONE:
        findings.append(layout.describe_stop(end, position))
    else:
        most_tokens = {each.name: int(each.held.max())
                       for each in counters(program, order.clocks)}
        limit = program.config.token_limit
        findings += [f"the token counter {counter} can reach {most}, but holds {limit}: let the "
                     f"receiver take tokens earlier"
                     for counter, most in most_tokens.items() if most > limit]
    tokens = int(np.unpackbits(program.code["post"][:, None], axis=1).sum())
    return Verdict(tuple(findings), len(program.code), tokens, len(layout.code.rows), most_tokens)


def _races(program: Program, layout: Layout, order: Order) -> Iterator[str]:
    """One line for each pair of instructions that race, the first few."""
    pairs: set[tuple[int, int]] = set()
    for race in order.races[:order.found[0]]:
        later = int(race["instruction"])
        earlier = int(order.members[race["engine"], race["sequence"] - 1])
        if (earlier, later) not in pairs and len(pairs) < MOST_FINDINGS:
            pairs.add((earlier, later))
            yield _race(program, layout, earlier, later, int(race["space"]))


def _race(program: Program, layout: Layout, earlier: int, later: int, space: int) -> str:
    first, second = _engine(program, earlier), _engine(program, later)
    meeting = find_conflict(layout, earlier, later, space)
    place = _place(program, layout, space, meeting)
    return (f"{_name_instruction(program, later)} {'writes' if meeting.writes else 'reads'} "
            f"{place}, which {_name_instruction(program, earlier)} "
            f"{'writes' if meeting.wrote else 'reads'}, and no tokens put {earlier} before "
            f"{later}: post={second} at {earlier} or a later {first}, wait={first} at {later} or "
            f"an earlier {second}")


def _place(program: Program, layout: Layout, space: int, meeting: Conflict) -> str:
    low, high = meeting.first, meeting.last
    if space < DRAM:
        return f"{Buffer(space).name.lower()}[{low}..{high}]"
    grain = layout.dram.grain
    return f"{program.segments[space - DRAM].name}[{low * grain:#x}..{(high + 1) * grain - 1:#x}]"


def _name_instruction(program: Program, position: int) -> str:
    return place_of(instruction_at(program.code, position), position)


def _engine(program: Program, position: int) -> str:
    engine = instruction_at(program.code, position).engine
    return "fetch" if engine is None else engine.name.lower()
