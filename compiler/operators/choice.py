"""Choosing knobs for a template: candidates are ranked by estimate, and the first few are timed.

A template says which knobs there are, which of them fit, and what they would cost, roughly. Knobs
come in columns here: one `Knobs` whose fields are arrays stands for as many candidates, and what is
computed with it is computed for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...base.errors import ConfigError, ExecutionError
from ...isa.instructions import Buffer
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ..errors import CompileError
from .cost_model import Column
from .form import FormT, KnobsT, Template
from .segment_sizes import check_sizes, fits_segments

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Cost = Callable[[Program], int]


@runtime_checkable
class Remembering(Protocol):
    """A cost function that can look up a program by its inputs, before it is linked."""

    def look_up(self, parts: Sequence[bytes], make: Callable[[], Program]) -> int: ...


CLOSE = 1.02                # to the bound: there is nothing left to gain
TRIALS = 8                  # programs that are compiled and timed, at most
INSTRUCTIONS = 600          # of these programs together, after which no other is tried,
CYCLES_PER_TRIED = 128      # or one for so many cycles, if these are more: long layers are worth it
FAR = 1.15                  # times the bound: so are layers that take longer,
GAP_PER_TRIED = 2           # by an instruction for so many cycles above that
THOROUGH = 4                # times as many trials, for an operator alone, and
PATIENCE = 16               # as many instructions
UNSURE = 1.06               # by this factor, estimates err
UNSURE_OF_FORM = 1.25       # the same between forms: what is computed otherwise errs otherwise
UNSURE_ALONE = 1.15         # the same in a thorough search
DOUBT = 0.2                 # by more, this part of what is above the bound in relation to it,
SHORT = 10_000              # and so many cycles: layers that are shorter gain little
LOOKED_AT = 64              # candidates from which the trials are taken
ALIKE = 1.3                 # sizes that differ by less are no other idea
SCRATCHPADS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


@dataclass(frozen=True)
class Candidate(Generic[FormT, KnobsT]):
    """Knobs that fit, for one form of an operator, and roughly the cycles that they take."""

    estimate: float
    form: FormT
    knobs: KnobsT


class Compiled(Protocol):
    @property
    def program(self) -> Program: ...


Result = TypeVar("Result", bound=Compiled)


def columns_of(template: Template[FormT, KnobsT], form: FormT) -> KnobsT | None:
    """All candidates in columns; None if nothing fits."""
    return next(_fitting_grids(template, form), None)


def _fitting_grids(template: Template[FormT, KnobsT], form: FormT) -> Iterator[KnobsT]:
    """The candidates of each grid of which something fits; none of a form whose tensors no segment
    holds, which may have more of them than the machine has memory."""
    if not fits_segments(form):
        return
    for knobs in template.grids(form):
        fitting = np.asarray(template.fits(form, knobs))
        if fitting.any():
            yield type(knobs)(**{name: value[fitting] if isinstance(value, np.ndarray) else value
                                 for name, value in _items(knobs)})


def _compared_grids(template: Template[FormT, KnobsT], form: FormT) -> Iterator[KnobsT]:
    return islice(_fitting_grids(template, form), template.compared)


def candidates(template: Template[FormT, KnobsT], form: FormT) -> list[KnobsT]:
    """All knobs that fit, one by one."""
    return [knobs for columns in _compared_grids(template, form)
            for knobs in _rows(columns, np.arange(_length(columns)))]


def estimates(template: Template[FormT, KnobsT], form: FormT,
              memory: MemoryTiming) -> list[float]:
    """The estimates of all candidates, in their order."""
    found: list[float] = []
    for columns in _compared_grids(template, form):
        cycles = np.asarray(template.estimate(form, columns, memory), float)
        found += np.broadcast_to(cycles, _length(columns)).tolist()
    return found


def longest_steps(template: Template[FormT, KnobsT], form: FormT, memory: MemoryTiming) -> KnobsT:
    """Of the knobs whose estimates are close to the best, those with the longest steps."""
    cycles, knobs = estimates(template, form, memory), candidates(template, form)
    most = UNSURE_OF_FORM * min(cycles)
    near = [number for number, estimate in enumerate(cycles) if estimate <= most]
    return knobs[max(near, key=lambda number: (_step_size(knobs[number]), -cycles[number]))]


def _step_size(knobs: DataclassInstance) -> int:
    """The product of all sizes."""
    return prod(size for _, value in _items(knobs)
                for size in (value if isinstance(value, tuple) else (value,))
                if type(size) is int and size)


def at_once(template: Template[FormT, KnobsT], form: FormT,
            memory: MemoryTiming) -> list[KnobsT]:
    """Knobs that may take the whole input in one step, best estimate first."""
    if template.at_once is not None:
        return list(template.at_once(form))
    columns, largest = columns_of(template, form), template.largest(form)
    if columns is None:
        return []
    cycles = np.broadcast_to(template.estimate(form, columns, memory), _length(columns))
    whole = np.all([np.broadcast_to(getattr(columns, name) == getattr(largest, name), cycles.shape)
                    for name in ("rows", "columns") if hasattr(largest, name)], 0)
    order = np.argsort(cycles, kind="stable")
    return _rows(columns, order[np.broadcast_to(whole, cycles.shape)[order]])


def rank_candidates(template: Template[FormT, KnobsT], forms: Iterable[FormT],
                    memory: MemoryTiming | None = None) -> list[Candidate[FormT, KnobsT]]:
    """The candidates, best estimate first; equal ones in the order of the grid. It is an error if
    nothing fits. A form whose bound is no better than the estimate of another is not looked at any
    further."""
    memory = memory or MemoryTiming()
    found: list[Candidate[FormT, KnobsT]] = []
    hopeless: float | None = None       # a bound above this cannot win
    for form in forms:
        least = form.work.bound(form.config, memory).cycles * form.handicap
        if hopeless is not None and least > hopeless:
            continue
        for columns in _compared_grids(template, form):
            cycles = np.broadcast_to(template.estimate(form, columns, memory), _length(columns))
            best = np.argsort(cycles, kind="stable")[:LOOKED_AT]
            found += [Candidate(estimate * form.handicap, form, knobs) for estimate, knobs
                      in zip(cycles[best].tolist(), _rows(columns, best), strict=True)]
            expected = max(least, float(cycles.min()) * form.handicap)
            hopeless = expected if hopeless is None else min(hopeless, expected)
    if not found:
        check_sizes(form)
        raise CompileError(_too_small(template, form))
    found.sort(key=lambda candidate: candidate.estimate)
    return [*found[:LOOKED_AT], *first_of_forms(found, found[:LOOKED_AT])]


def first_of_forms(ordered: Iterable[Candidate[FormT, KnobsT]],
                   but: Iterable[Candidate[FormT, KnobsT]]) -> list[Candidate[FormT, KnobsT]]:
    """The most promising candidate of each form, but for those of some others."""
    known, found = {id(each.form) for each in but}, []
    for each in ordered:
        if id(each.form) not in known:
            known.add(id(each.form))
            found.append(each)
    return found


def _too_small(template: Template[FormT, KnobsT], form: FormT) -> str:
    """The message if nothing fits: which scratchpad would have to be larger."""
    for buffer in SCRATCHPADS:
        name = f"{buffer.name.lower()}_bytes"
        larger = form.config
        while True:
            try:
                larger = replace(larger, **{name: 2 * getattr(larger, name)})
            except ConfigError:             # no index reaches further
                break
            if columns_of(template, replace(form, config=larger)) is not None:
                return (f"{form.spec.operator}: not even one tile fits: {name} is "
                        f"{getattr(form.config, name)}, which is {form.config.tiles(buffer)} "
                        f"tiles, but must be {getattr(larger, name)} or more")
    return (f"{form.spec.operator}: not even one tile fits: several scratchpads of this "
            f"configuration are too small")


def fastest(ordered: Sequence[Candidate[FormT, KnobsT]],
            compiled: Callable[[Candidate[FormT, KnobsT]], Result], least: float,
            cost: Cost | None, *,
            thorough: bool = False) -> tuple[Candidate[FormT, KnobsT], Result]:
    """The best of a few candidates, compiled: the first, if it is close to the bound or there is no
    cost to ask; otherwise the fastest of several that differ. The longer the bound, and the further
    from it the best one is, the more are tried, and the less their estimates are trusted; a
    thorough search tries more, and one of every form that may win. A candidate that cannot run is
    passed over as long as another can."""
    chosen, result = ordered[0], compiled(ordered[0])
    if cost is None:
        return chosen, result
    best, written = _measure(result, cost), len(result.program.code)
    # Estimates err, but alike; only what makes one too low may be missing in another.
    calibration = max(1.0, ordered[0].estimate / best)
    tried = [chosen]

    def has_effort_left() -> bool:
        effort = max(INSTRUCTIONS, least / CYCLES_PER_TRIED, (best - FAR * least) / GAP_PER_TRIED)
        return written < effort * (PATIENCE if thorough else 1)

    def is_hopeless(candidate: Candidate[FormT, KnobsT], unsure: float) -> bool:
        far = max(unsure, 1 + DOUBT * (best - least) / (least + SHORT))
        return best <= CLOSE * least or candidate.estimate >= far * calibration * best

    def measure(candidate: Candidate[FormT, KnobsT]) -> None:
        nonlocal best, chosen, result, written
        other = compiled(candidate)
        tried.append(candidate)
        written += len(other.program.code)
        cycles = _measure(other, cost)
        if cycles < best:
            best, chosen, result = cycles, candidate, other

    for candidate in diverse_candidates(ordered, TRIALS * (THOROUGH if thorough else 1)):
        if is_hopeless(candidate, UNSURE_ALONE if thorough else UNSURE) or not has_effort_left():
            break
        measure(candidate)
    for candidate in first_of_forms(ordered, tried) if thorough else ():
        if not is_hopeless(candidate, UNSURE_OF_FORM):
            measure(candidate)
    if best == float("inf"):
        cost(result.program)            # says why
    return chosen, result


def _measure(result: Compiled, cost: Cost) -> float:
    try:
        return cost(result.program)
    except ExecutionError:
        return float("inf")


def diverse_candidates(ordered: Sequence[Candidate[FormT, KnobsT]],
                       most: int = TRIALS) -> list[Candidate[FormT, KnobsT]]:
    """The candidates after the first that are worth a trial because they differ from those before
    them. With the first, there are at most `most`."""
    taken = [ordered[0]]
    for candidate in ordered[1:]:
        if len(taken) == most:
            break
        if not any(_are_alike(candidate, other) for other in taken):
            taken.append(candidate)
    return taken[1:]


def _are_alike(one: Candidate[FormT, KnobsT], other: Candidate[FormT, KnobsT]) -> bool:
    return one.form is other.form and all(
        mine == theirs or (type(mine) is int and max(mine, theirs) < ALIKE * min(mine, theirs))
        for (_, mine), (_, theirs) in zip(_items(one.knobs), _items(other.knobs), strict=True))


def _items(knobs: DataclassInstance) -> list[tuple[str, Column]]:
    return [(field.name, getattr(knobs, field.name)) for field in fields(knobs)]


def _length(columns: DataclassInstance) -> int:
    return max(len(value) for _, value in _items(columns) if isinstance(value, np.ndarray))


def _rows(columns: KnobsT, places: npt.NDArray[np.intp]) -> list[KnobsT]:
    """Some rows of the candidates in columns, one by one."""
    lists = [value[places].tolist() if isinstance(value, np.ndarray) else [value] * len(places)
             for _, value in _items(columns)]
    names = [name for name, _ in _items(columns)]
    return [type(columns)(**dict(zip(names, row, strict=True)))
            for row in zip(*lists, strict=True)]
