"""Cycles of programs, each simulated once and then cached, as a cost model for the compiler.

Cycles depend on the program, the memory and the sources of the simulator. All of them are in the
cache key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..base.cache import RESULTS, cache_key
from ..base.source_digest import source_digest
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..isa.program_key import program_parts

KIND = "cycles"
BYTES = 8


@dataclass(frozen=True)
class SimulatedCost:
    """The compiler's cost model: the simulator, with this memory timing."""

    memory: MemoryTiming = field(default_factory=MemoryTiming)

    def __call__(self, program: Program) -> int:
        """The cycles of a program that reaches its end."""
        return self.look_up(program_parts(program), lambda: program)

    def look_up(self, parts: Sequence[bytes], make: Callable[[], Program]) -> int:
        """The same for a program that is determined by some parts, and built only if it is not
        cached."""
        if not RESULTS.is_used():
            return self._simulate(make())
        key = cache_key(KIND, source_digest(__name__), repr(self.memory), *parts)
        return int.from_bytes(RESULTS.get_or_make(
            key, lambda: self._simulate(make()).to_bytes(BYTES, "little")), "little")

    def _simulate(self, program: Program) -> int:
        from .simulate import simulate

        cycles = simulate(program, memory=self.memory).cycles
        assert cycles is not None, "the simulator counts cycles"
        return cycles
