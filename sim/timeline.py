"""When each instruction of a run was dispatched, started and ended: one array per kind of event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Cycles = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """One element for each instruction, in cycles since the run began; -1 if it did not happen. A
    sync is executed by FETCH and has neither start nor end.

    An instruction starts in the cycle in which its engine takes it and its tokens, and ends in the
    cycle in which its last effect happens and its tokens are posted. The hardware exposes only
    these two; `dispatched` and `waits` come from the simulator alone.
    """

    start: Cycles
    end: Cycles
    dispatched: Cycles | None = None    # sent to its engine's queue
    waits: Cycles | None = None         # n × 4: cycles its engine waited for a token from
                                        # each engine, before it started

    def order(self) -> npt.NDArray[np.intp]:
        """The instructions that ended, in the order in which they started."""
        ended = np.flatnonzero(self.end >= 0)
        return ended[np.argsort(self.start[ended], kind="stable")]


def empty_timeline(instructions: int) -> Timeline:
    """The timeline of a run that has not begun."""
    return Timeline(start=np.full(instructions, -1, np.int64),
                    end=np.full(instructions, -1, np.int64))
