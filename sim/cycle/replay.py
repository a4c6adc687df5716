"""Computes the data of a run whose timing is known, instruction by instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...isa.program import Program
from ...isa.stream import decode
from ...isa.verification.bounds import check
from ..functional.machine_table import OUTSIDE
from ..functional.memory import Memory
from ..functional.scratchpads import Scratchpads
from ..functional.simulator import Computation, compute
from ..timeline import Timeline

if TYPE_CHECKING:
    from ..functional.effects import Effects


class Replay:
    """Executes the instructions that ended, in the order in which they started.

    The timing run has obeyed the tokens already, so nothing is checked again. For a program without
    races this leaves the same memory as the hardware. If a run was stopped, instructions that had
    started but not ended have no effect here.
    """

    def __init__(self, program: Program, memory: Memory):
        self.program = program
        self.memory = memory
        self._pads: Scratchpads
        self._effects: Effects | None = None

    def run(self, timeline: Timeline) -> None:
        """Apply the effects of the run to memory, starting with scratchpads of zeros."""
        effects, order, step = self._make_effects(), timeline.order(), 0
        while step < len(order):
            step, heard = effects.execute_all(order, step)
            if step < len(order):
                self._execute(int(order[step]), outside=heard == OUTSIDE)
                step += 1

    def _make_effects(self) -> Effects:
        if self._effects is None:
            from ..functional.effects import Effects
            self._pads = Scratchpads(self.program.config)
            self._effects = Effects(self.program, self.memory)
            self._effects.use(self._pads)
        else:
            self._pads.clear()
        return self._effects

    def _execute(self, position: int, *, outside: bool) -> None:
        """Execute an instruction that compiled code did not: there is no kernel for it, or an index
        is out of range, which is possible if its micro-ops were computed."""
        instruction, = decode(self.program.code[position:position + 1])
        check(instruction, self.program.config, self.program.segments, self._pads.uop,
              position=position)
        assert not outside, f"instruction {position} reaches only what there is"
        assert isinstance(instruction, Computation)
        compute(instruction, self._pads)
