"""Explains why a program did not reach its end, for every device with a clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import ExecutionError, IsaError
from ...isa.assembly.disassembler import format_instruction
from ...isa.faults import Fault
from ...isa.instructions import Engine
from ...isa.program import Program, engines_of
from ...isa.stream import decode
from ..timeline import Timeline
from ..token_counters import ENGINES, format_awaited, format_counters, tokens_left

if TYPE_CHECKING:
    from .run import Run


LIMIT = "the limit (limit= in Python, --limit on the command line)"


class Place(NamedTuple):
    """The progress of an engine: how many instructions started and ended, and the last that
    started."""

    started: int
    ended: int
    position: int


def check_end(program: Program, run: Run, limit: int) -> None:
    """Refuse a run that did not reach the end of its program."""
    if run.stuck:
        raise ExecutionError(describe_timeout(program, limit, places_in(program, run.timeline)))
    if run.fault != Fault.NONE:
        raise ExecutionError(describe_fault(program, run.fault, run.fault_position))


def describe_fault(program: Program, cause: Fault, position: int) -> str:
    """The message for a program that was stopped by a fault."""
    if cause == Fault.NO_END:
        return (f"the program ran out of instructions: it has {len(program.code)}, but none of "
                f"them is sync.end")
    return f"{line(program, position)}: {cause.name.lower()} fault"


def describe_timeout(program: Program, limit: int, places: Mapping[Engine, Place]) -> str:
    """The message for a program that was given up: its deadlock, or the progress of every
    engine."""
    if waits := _standstill(program, places):
        ended = sum(place.ended for place in places.values())
        return f"deadlock after {ended} of {len(program.code)} instructions: {waits}"
    where = "; ".join(_where(program, engine, place) for engine, place in places.items())
    return f"the program has not ended after {limit:,} cycles, {LIMIT}: {where}"


def _standstill(program: Program, places: Mapping[Engine, Place]) -> str:
    """What every engine waits for and which tokens are left, if there is a deadlock; otherwise
    empty.

    All of it follows from how many instructions started and ended, which the hardware shows as
    well. Nothing is in flight, so FETCH has filled the queues as far as possible.
    """
    started = {engine: place.started for engine, place in places.items()}
    ended = {engine: place.ended for engine, place in places.items()}
    if started != ended:
        return ""
    engines = engines_of(program)
    queues = {engine: np.flatnonzero(engines == engine)[started[engine]:] for engine in Engine}
    tokens = tokens_left(program, started, ended)
    fetched = _first_undispatched(program, engines, queues)
    waits = []
    for engine, queue in queues.items():
        if not len(queue):
            continue
        head, name = int(queue[0]), engine.name.lower()
        missing = [giver for giver in Engine if program.code["wait"][head] >> giver & 1
                   and tokens[giver * ENGINES + engine] == 0]
        if head >= fetched:
            waits.append(f"{name} waits for {line(program, head)}, which is held up by "
                         f"{line(program, fetched)}")
        elif missing:
            waits.append(f"{name} waits at {line(program, head)} for {format_awaited(missing)}")
        else:
            return ""
    return f"{'; '.join(waits)}; tokens: {format_counters(tokens)}" if waits else ""


def _first_undispatched(program: Program, engines: npt.NDArray[np.int64],
                        queues: Mapping[Engine, npt.NDArray[np.intp]]) -> int:
    """The first instruction that FETCH cannot dispatch: its engine's queue is full, or it is a sync
    that has to wait for what precedes it. `queues` are the instructions yet to start."""
    depth = program.config.queue_depth
    full = [int(queue[depth]) for queue in queues.values() if len(queue) > depth]
    heads = [int(queue[0]) for queue in queues.values() if len(queue)]
    syncs = np.flatnonzero((engines < 0) & (np.arange(len(engines)) > min(heads, default=0)))
    return min([*full, *syncs[:1].tolist()], default=len(engines))


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
    """An instruction as assembly, or why it is not an instruction."""
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
