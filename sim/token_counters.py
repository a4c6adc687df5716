"""Token counters: names, highest values and final values.

A counter is a number, giver × 4 + taker, as in the hardware.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from ..isa.instructions import Engine
from ..isa.program import Program, engines_of
from .timeline import Cycles, Timeline

ENGINES = len(Engine)


@cache
def counter_name(counter: int) -> str:
    """As `load → gemm`."""
    giver, taker = divmod(counter, ENGINES)
    return f"{Engine(giver).name.lower()} → {Engine(taker).name.lower()}"


def nonzero_counters(counts: Sequence[int]) -> dict[str, int]:
    """The counters that are not zero, by name."""
    return {counter_name(counter): count for counter, count in enumerate(counts) if count}


def format_counters(counts: Sequence[int]) -> str:
    """For a message: the counters that are not zero."""
    return ", ".join(f"{name} {count}" for name,
                     count in nonzero_counters(counts).items()) or "none"


def format_awaited(givers: Sequence[Engine]) -> str:
    """For a message: `a token from load and from store`."""
    return "a token " + " and ".join(f"from {giver.name.lower()}" for giver in givers)


def most_tokens(program: Program, timeline: Timeline) -> dict[str, int]:
    """The highest value of every counter used in a run, given when its instructions started and
    ended. In a cycle, takes come before posts; a token posted to a full counter is lost, and the
    run ends with a fault."""
    most = [0] * ENGINES ** 2
    for counter in range(ENGINES ** 2):
        posts, takes = _events(program, timeline, *divmod(counter, ENGINES))
        if len(posts):
            taken = np.searchsorted(takes, posts, side="right")
            held = int((np.arange(1, len(posts) + 1) - taken).max())
            most[counter] = min(held, program.config.token_limit)
    return nonzero_counters(most)


def _events(program: Program, timeline: Timeline, giver: int, taker: int) -> tuple[Cycles, Cycles]:
    """When tokens were posted to a counter, and when they were taken. Engines run in order, so both
    are sorted."""
    engines = engines_of(program)
    posts = timeline.end[(engines == giver) & (program.code["post"] >> taker & 1 != 0)]
    takes = timeline.start[(engines == taker) & (program.code["wait"] >> giver & 1 != 0)]
    return posts[posts >= 0], takes[takes >= 0]


def tokens_left(program: Program, started: Mapping[Engine, int],
                ended: Mapping[Engine, int]) -> list[int]:
    """The value of every counter after engines have started and ended this many instructions."""
    engines = engines_of(program)
    left = [0] * ENGINES ** 2
    for engine in Engine:
        mine = np.flatnonzero(engines == engine)
        posts = program.code["post"][mine[:ended[engine]]]
        waits = program.code["wait"][mine[:started[engine]]]
        for other in Engine:
            left[engine * ENGINES + other] += int((posts >> other & 1).sum())
            left[other * ENGINES + engine] -= int((waits >> other & 1).sum())
    return left
