"""The memory of a board as the exact simulator knows it: fitted to what its system really took.

The simulator's memory (isa/memory_timing.py) has latencies, a rate, turns and a chance of stalls;
LiteDRAM has banks, rows that must be opened and refreshes. Where the first is to stand for the
second, its numbers are those with which whole programs take the time that they take in the system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from ....isa.memory_timing import MemoryTiming
from ....isa.program import Program
from ....runtime.devices.cycle import CycleDevice

# What may change, and by how much at once, coarse steps first.
STEPS = {"cycles_per_beat": (1,), "turn": (1,), "read_latency": (8, 2, 1),
         "write_latency": (8, 2, 1), "stalls": (32, 8, 2), "reads": (1,), "writes": (1,)}
TRIED = 4                       # starts from which the search goes downhill


@dataclass(frozen=True)
class Measured:
    """Programs, and the cycles that they took together."""

    programs: tuple[Program, ...]
    cycles: int

    def error(self, timing: MemoryTiming) -> float:
        """How far the exact simulator is off with this memory: 0.02 is two percent too many."""
        return sum(simulate_cycles(each, timing) for each in self.programs) / self.cycles - 1


def simulate_cycles(program: Program, timing: MemoryTiming) -> int:
    device = CycleDevice(program.config, timing=timing, data=False)
    device.load(program)
    cycles = device.run().cycles
    assert cycles is not None           # this device counts them
    return cycles


def fit_timing(runs: Sequence[Measured], *starts: MemoryTiming) -> MemoryTiming:
    """The memory with which the largest error is smallest, looked for downhill from the nearest
    of some starts: each ends in a hollow of its own."""
    nearest = sorted(starts, key=lambda each: worst_error(runs, each))[:TRIED]
    return min((_descend(runs, each) for each in nearest),
               key=lambda each: worst_error(runs, each))


def _descend(runs: Sequence[Measured], start: MemoryTiming) -> MemoryTiming:
    best, error = start, worst_error(runs, start)
    while True:
        nearest = min(_neighbours(best), key=lambda each: worst_error(runs, each))
        found = worst_error(runs, nearest)
        if found >= error:
            return best
        best, error = nearest, found


def format_settings(timing: MemoryTiming) -> str:
    """The lines of a board's file."""
    return "\n".join(f"{field.name} = {str(getattr(timing, field.name)).lower()}"
                     for field in fields(timing)
                     if getattr(timing, field.name) != field.default)


def worst_error(runs: Sequence[Measured], timing: MemoryTiming) -> float:
    return max(abs(each.error(timing)) for each in runs)


def _neighbours(timing: MemoryTiming) -> Iterator[MemoryTiming]:
    for name, sizes in STEPS.items():
        for size in sizes:
            for change in (size, -size):
                value = getattr(timing, name) + change
                low, high = MemoryTiming.__dataclass_fields__[name].metadata["range"]
                if low <= value <= high:
                    yield replace(timing, **{name: value})
