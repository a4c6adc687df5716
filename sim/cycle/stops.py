"""Why a program did not reach its end: the same words for every execution that has a clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...isa.disassembly import format_instruction
from ...isa.errors import ExecutionError, IsaError
from ...isa.faults import Fault
from ...isa.instructions import Engine
from ...isa.program import Program, engines_of
from ...isa.stream import decode
from ..timeline import Timeline

if TYPE_CHECKING:
    from .run import Run


class Place(NamedTuple):
    """How far an engine came: instructions that started and ended, and the last that started."""

    started: int
    ended: int
    position: int


def check_end(program: Program, run: Run, limit: int) -> None:
    """Refuse a run that did not reach the program's end. A simulator notices a deadlock when it
    begins; that the program has not ended by the limit is true all the same. After a fault it has
    ended when the bus is quiet."""
    if run.stuck:
        raise ExecutionError(not_ended(program, limit, places_in(program, run.timeline)))
    if run.fault != Fault.NONE:
        raise ExecutionError(faulted(program, run.fault, run.fault_position))


def faulted(program: Program, cause: Fault, position: int) -> str:
    """A program that was stopped by a fault."""
    if cause == Fault.NO_END:
        return (f"the program ran out of instructions: it has {len(program.code)}, but none of "
                f"them is sync.end")
    return f"{line(program, position)}: {cause.name.lower()} fault"


def not_ended(program: Program, limit: int, places: Mapping[Engine, Place]) -> str:
    """A program that was given up, and where every engine is."""
    where = "; ".join(_where(program, engine, place) for engine, place in places.items())
    return f"the program has not ended after {limit} cycles: {where}"


def places_in(program: Program, timeline: Timeline) -> dict[Engine, Place]:
    """Where every engine is at the end of a timeline."""
    places = {}
    engines = engines_of(program)
    for engine in Engine:
        mine = np.flatnonzero(engines == engine)
        started = mine[timeline.start[mine] >= 0]
        ended = int((timeline.end[mine] >= 0).sum())
        places[engine] = Place(len(started), ended, int(started[-1]) if len(started) else 0)
    return places


def line(program: Program, position: int) -> str:
    """An instruction's number and text."""
    if not 0 <= position < len(program.code):
        return f"instruction {position}, which the program does not have"
    return f"instruction {position} ({text_of(program, position)})"


def text_of(program: Program, position: int) -> str:
    """An instruction as assembly, or why it is none."""
    try:
        instruction, = decode(program.code[position:position + 1])
    except IsaError as error:
        return str(error).removeprefix("instruction 0: ")
    return format_instruction(instruction, program.segments)


def _where(program: Program, engine: Engine, place: Place) -> str:
    name = engine.name.lower()
    if place.started == place.ended:
        return f"{name} has completed {place.ended} instructions"
    return f"{name} is at {line(program, place.position)}"
