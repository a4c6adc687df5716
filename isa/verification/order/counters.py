"""How many tokens each counter of a stream can hold, under any timing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ....base.classes.dataclass import dataclass
from ...instructions import Engine
from ...program import Program, engines_of

Numbers = npt.NDArray[np.int64]
MASKS = 256                 # values of the field that says whom an instruction posts to
POSTED_BY_MASK = np.arange(MASKS)[:, None] >> np.arange(len(Engine)) & 1


@dataclass(frozen=True)
class Counter:
    """The tokens from one engine to another. The k-th of `posters` gives what the k-th of `takers`
    waits for; `held` is the most that the counter can hold when each of them posts."""

    source: Engine
    target: Engine
    posters: Numbers
    takers: Numbers
    held: Numbers

    @property
    def name(self) -> str:
        return f"{self.source.name.lower()} → {self.target.name.lower()}"


def sequences_of(program: Program) -> Numbers:
    """The number of each instruction among those of its engine, from 1 on."""
    engine = engines_of(program)
    sequence = np.zeros(len(engine), np.int64)
    for each in Engine:
        mine = np.flatnonzero(engine == each)
        sequence[mine] = np.arange(1, len(mine) + 1)
    return sequence


def most_posted(program: Program) -> int:
    """The most tokens that one engine posts to another in all: no counter can hold more."""
    posts = np.ascontiguousarray(program.code["post"])
    masks = np.bincount((engines_of(program) + 1) * MASKS + posts, minlength=0)
    masks = np.append(masks, np.zeros(-len(masks) % MASKS, np.int64)).reshape(-1, MASKS)
    return int((masks @ POSTED_BY_MASK).max(initial=0))


def counters(program: Program, clocks: Numbers) -> Iterator[Counter]:
    """All counters that are used. `clocks` say what is complete before each instruction starts.

    When an instruction posts its k-th token to an engine, that engine has surely taken those
    awaited by the instructions which are complete by then, and perhaps no others.
    """
    engine, sequence = engines_of(program), sequences_of(program)
    for source in Engine:
        posts = np.where(engine == source, program.code["post"], 0)
        everyone = int(np.bitwise_or.reduce(posts, initial=0))
        for target in Engine:
            if not everyone >> target & 1:
                continue
            posters = np.flatnonzero(posts >> target & 1)
            takers = np.flatnonzero((engine == target) & (program.code["wait"] >> source & 1))
            taken = np.searchsorted(sequence[takers], clocks[posters, target], side="right")
            yield Counter(source, target, posters, takers,
                          np.arange(1, len(posters) + 1) - taken)
