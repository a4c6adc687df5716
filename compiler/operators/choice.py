"""Which knobs a template gets: candidates are ranked by estimate, and the first few are timed.

A template says which knobs there are, which of them fit, and what they would cost, roughly. Knobs
come in columns here: one `Knobs` whose fields are arrays stands for as many candidates, and what is
computed with it is computed for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypedDict, TypeVar

import numpy as np

from ...isa.errors import ExecutionError
from ...isa.instructions import PARAMETER_TILES, Buffer
from ...isa.program import Program
from ...isa.timing import MemoryTiming
from ..errors import CompileError
from ..schedule.schedule import Schedule

Cost = Callable[[Program], int]

CLOSE = 1.02                # to the bound: there is nothing left to gain
TRIALS = 3                  # programs that are compiled and timed, at most
INSTRUCTIONS = 600          # of these programs together, after which no other is tried
UNSURE = 1.06               # estimates err by so much
LOOKED_AT = 64              # candidates from which the trials are taken
ALIKE = 1.3                 # sizes that differ by less are no other idea


class Options(TypedDict, total=False):
    """How to compile, whatever the operator is."""

    hide_latency: bool
    cost: Cost | None       # cycles of a program; without it, estimates decide
    memory: MemoryTiming    # the one that estimates are made for


class Template(Protocol):
    """How an operator is computed: a module of `operators`."""

    def grids(self, what: Any) -> Iterator[Any]:
        """Knobs in columns. The first grid of which something fits is taken."""

    def fits(self, what: Any, knobs: Any) -> Any:
        """Whether all buffers find room."""

    def estimate(self, what: Any, knobs: Any, memory: MemoryTiming) -> Any:
        """Cycles, roughly."""

    def schedule(self, what: Any, knobs: Any) -> Schedule:
        """The template with its knobs filled in."""


@dataclass(frozen=True)
class Candidate:
    """Knobs that fit, for one way to write down what is computed."""

    estimate: float
    what: Any
    knobs: Any


class Compiled(Protocol):
    @property
    def program(self) -> Program: ...


Result = TypeVar("Result", bound=Compiled)


def columns_of(template: Template, what: Any) -> Any | None:
    """All candidates in columns; None if nothing fits."""
    for knobs in template.grids(what):
        fitting = np.asarray(template.fits(what, knobs))
        if fitting.any():
            return type(knobs)(**{name: value[fitting] if isinstance(value, np.ndarray) else value
                                  for name, value in _items(knobs)})
    return None


def candidates(template: Template, what: Any) -> list[Any]:
    """All knobs that fit, one by one."""
    columns = columns_of(template, what)
    return [] if columns is None else [_row(columns, place) for place in range(_length(columns))]


def ranked(template: Template, whats: Iterable[Any],
           memory: MemoryTiming | None = None) -> list[Candidate]:
    """Some candidates, the one with the best estimate first; of equals, the first in the grid.
    Refuses what does not fit at all."""
    found: list[Candidate] = []
    for what in whats:
        columns = columns_of(template, what)
        if columns is None:
            continue
        cycles = np.broadcast_to(template.estimate(what, columns, memory or MemoryTiming()),
                                 _length(columns))
        found += [Candidate(float(cycles[place]), what, _row(columns, int(place)))
                  for place in np.argsort(cycles, kind="stable")[:LOOKED_AT]]
    if not found:
        raise CompileError(f"not even one tile of {what.spec} fits in the scratchpads of this "
                           f"configuration: its accumulator has {what.config.tiles(Buffer.ACC)} "
                           f"tiles, and a requantize alone needs {PARAMETER_TILES + 1}")
    return sorted(found, key=lambda candidate: candidate.estimate)[:LOOKED_AT]


def fastest(ordered: Sequence[Candidate], compiled: Callable[[Candidate], Result],
            least: float, cost: Cost | None) -> Result:
    """The best of a few candidates: the first, if it is close to the least that is possible, or
    nobody can be asked; otherwise the fastest of some that differ. A candidate that cannot run is
    passed over, as long as another can."""
    result = compiled(ordered[0])
    if cost is None:
        return result
    best, written = _timed(result, cost), len(result.program.code)
    calibration = ordered[0].estimate / best        # estimates err, but alike
    for candidate in different(ordered):
        hopeless = calibration and candidate.estimate >= UNSURE * calibration * best
        if best <= CLOSE * least or hopeless or written >= INSTRUCTIONS:
            break
        other = compiled(candidate)
        written += len(other.program.code)
        cycles = _timed(other, cost)
        if cycles < best:
            best, result = cycles, other
    if best == float("inf"):
        cost(result.program)            # says why
    return result


def _timed(result: Compiled, cost: Cost) -> float:
    try:
        return cost(result.program)
    except ExecutionError:
        return float("inf")


def different(ordered: Sequence[Candidate]) -> list[Candidate]:
    """The candidates after the first that are worth a trial: unlike the ones before."""
    taken = [ordered[0]]
    for candidate in ordered[1:]:
        if len(taken) == TRIALS:
            break
        if not any(_alike(candidate, other) for other in taken):
            taken.append(candidate)
    return taken[1:]


def _alike(one: Candidate, other: Candidate) -> bool:
    return one.what is other.what and all(
        mine == theirs or (type(mine) is int and max(mine, theirs) < ALIKE * min(mine, theirs))
        for (_, mine), (_, theirs) in zip(_items(one.knobs), _items(other.knobs), strict=True))


def _items(knobs: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(knobs, field.name)) for field in fields(knobs)]


def _length(columns: Any) -> int:
    return max(len(value) for _, value in _items(columns) if isinstance(value, np.ndarray))


def _row(columns: Any, place: int) -> Any:
    return type(columns)(**{name: value[place].item() if isinstance(value, np.ndarray) else value
                            for name, value in _items(columns)})
