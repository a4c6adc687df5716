"""Data for a run whose timing is known: the effects of its instructions, as they happened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..isa.bounds import check
from ..isa.instructions import Gemm, Instruction, Sync
from ..isa.program import Program
from ..isa.stream import encode
from .functional import Functional
from .memory import Memory
from .scratchpads import Scratchpads
from .timeline import Timeline


class _Again(Functional):
    """Checks a gemm anew only if its micro-ops have changed: most runs bring the same ones."""

    def __init__(self, program: Program):
        super().__init__(program)
        self._used: dict[int, bytes] = {}

    def _checked(self, position: int) -> Instruction:
        gemm = self.instructions[position]
        if not isinstance(gemm, Gemm):
            return super()._checked(position)
        used = self.scratchpads.uop[gemm.uop:gemm.uop + gemm.count].tobytes()
        if self._used.get(position) != used:
            check(gemm, self.config, self.program.segments, self.scratchpads.uop,
                  position=position)
            self._used[position] = used
        return gemm


class Replay:
    """Executes the instructions that ended, in the order in which they started.

    That order is a fact, so tokens are not asked again; and as each of them ended, it could. For
    a program without races it leaves what the hardware leaves. A run that was stopped may have
    begun effects that are left out here: those of instructions which did not end.
    """

    def __init__(self, program: Program, memory: Memory):
        self.program = program
        self.memory = memory
        self._order: npt.NDArray[np.intp] | None = None
        self._machine: Functional

    def run(self, timeline: Timeline) -> None:
        """Change memory as the run did, from scratchpads that are zero."""
        order = timeline.order()
        if self._order is None or not np.array_equal(self._order, order):
            self._machine = self._machine_for(order)
            self._order = order
        self._machine.scratchpads = Scratchpads(self.program.config)
        for step in range(len(order)):
            self._machine.execute(step)

    def _machine_for(self, order: npt.NDArray[np.intp]) -> Functional:
        """A machine for the program that happened: what did not end may not even decode."""
        code = np.concatenate([self.program.code[order], encode([Sync()])])
        bare = tuple(replace(segment, data=None) for segment in self.program.segments)
        machine = _Again(replace(self.program, code=code, segments=bare, labels={}))
        machine.memory = self.memory
        return machine
