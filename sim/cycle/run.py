"""The cycle-exact simulator: runs a program for its timing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from ...base.errors import ExecutionError
from ...isa.config import MICROARCHITECTURE, Config
from ...isa.faults import Fault
from ...isa.instructions import Buffer, Engine
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...isa.registers import counter_names
from ..timeline import Timeline
from ..token_counters import nonzero_counters
from ..twins.record_types import Numbers, OneRecord
from .prepared_program import Bytes, Prepared, prepare

NO_LIMIT = 1 << 62
MOST_SHOWN = 6              # fields that a message lists


@dataclass(frozen=True, kw_only=True)
class Run:
    """The outcome of a run: times, counters, and how it stopped."""

    cycles: int
    counters: dict[str, int]        # by isa.registers.counter_names
    timeline: Timeline
    fault: Fault                    # NONE if the program reached its end
    fault_position: int
    stuck: bool                     # it never stops, or had not at the limit
    most_tokens: dict[str, int]     # the highest value of each counter that was used


def run_cycles(program: Program, *, config: Config | None = None,
               timing: MemoryTiming | None = None, limit: int | None = None,
               failing: range = range(0), skip: bool = True) -> Run:
    """Run a program for its timing only, without data.

    config      another accelerator than the program was made for, with the same tiles and
                scratchpads: what may differ is the bus, the queues, the banks, the ALU's lanes
    timing      how memory behaves; the reference system unless told otherwise
    limit       cycles after which to give up
    failing     DRAM addresses that answer with a bus error
    skip        False: step through every cycle, which gives the same result more slowly
    """
    config = config or program.config
    check_meaning(config, program.config)
    return run_prepared(prepare(program, config), image(program), timing=timing, limit=limit,
                        failing=failing, skip=skip)


def run_prepared(prepared: Prepared, segments: Sequence[Bytes | None], *,
                 timing: MemoryTiming | None = None, limit: int | None = None,
                 failing: range = range(0), skip: bool = True) -> Run:
    """Like `run_cycles`, for a prepared program; `segments` are the contents of memory."""
    count = len(prepared.code)
    times, waits = np.full((count, 3), -1, np.int64), np.zeros((count, len(Engine)), np.int64)
    registers, stuck = _simulate(prepared, segments, timing or MemoryTiming(), failing, times,
                                 waits, NO_LIMIT if limit is None else limit, skip)
    end = registers["control"]
    return Run(cycles=int(registers["clock"]["now"][0]), counters=_counters(registers),
               timeline=Timeline(dispatched=times[:, 0], start=times[:, 1], end=times[:, 2],
                                 waits=waits),
               fault=Fault(int(end["fault"][0])), fault_position=int(end["fault_position"][0]),
               stuck=stuck, most_tokens=nonzero_counters(registers["tokens"]["most"][0].tolist()))


def _counters(registers: OneRecord) -> dict[str, int]:
    """The counters of both sides, in the order of the hardware."""
    first, places = _counter_places()
    words = registers.view(np.int64)[first:first + len(places)].tolist()
    return {name: words[place] for name, place in places.items()}


@cache
def _counter_places() -> tuple[int, dict[str, int]]:
    """The index of the first counter among all registers, and the offset of each from there."""
    from ..twins.control import COUNTER_ORDER
    from ..twins.top import FIRST_COUNTER
    return FIRST_COUNTER, {name: COUNTER_ORDER.index(name) for name in counter_names()}


def registers_at(program: Program, cycle: int, *, timing: MemoryTiming | None = None,
                 failing: range = range(0)) -> dict[str, dict[str, int | list[int]]]:
    """The value of every register at the beginning of a cycle, by unit and name."""
    count = len(program.code)
    times, waits = np.full((count, 3), -1, np.int64), np.zeros((count, len(Engine)), np.int64)
    registers, _ = _simulate(prepare(program, program.config), image(program),
                             timing or MemoryTiming(), failing, times, waits, cycle, False)
    return {unit: {name: registers[0][unit][name].tolist() for name in registers.dtype[unit].names}
            for unit in registers.dtype.names}


def image(program: Program) -> list[Bytes | None]:
    """The initial contents of memory."""
    return [segment.data for segment in program.segments]


def _simulate(prepared: Prepared, segments: Sequence[Bytes | None], timing: MemoryTiming,
              failing: range, times: Numbers, waits: Numbers, limit: int,
              skip: bool) -> tuple[OneRecord, bool]:
    """Returns the registers after a run, and whether it was given up. Fills in `times` and
    `waits`."""
    from ..llvm.entry import bind_array
    from ..twins import top
    from . import loop
    from .bundles import Notes
    config = prepared.config
    failing = range(failing.start - prepared.moved, failing.stop - prepared.moved)
    machines = top.machines(1 + loop.PASTS)
    words = bind_array(loop.ALL_WORDS, machines)
    arguments = (
        replace(words, kind=loop.MACHINES), words,
        prepared.bind_timing(timing=_timing_record(timing, config.bus_bytes, failing)),
        prepared.loads(values=prepared.micro_ops.values(segments)),
        np.zeros((config.tiles(Buffer.UOP), loop.UOP_FIELDS), np.uint16),
        Notes(times=times, waits=waits, seen=np.zeros((len(Engine), len(Engine)), np.int64)),
        limit, skip)
    while (state := loop.compiled(*arguments)) == loop.PAUSED:
        pass                    # Ctrl-C takes effect here
    return top.registers(machines), state == loop.STUCK


@lru_cache(maxsize=64)
def _timing_record(timing: MemoryTiming, bus_bytes: int, failing: range) -> OneRecord:
    from ..llvm.entry import bind_array
    from ..twins import top
    from .loop import GIVEN
    return bind_array(GIVEN.timing, top.timing_of(timing, bus_bytes, failing))


def check_meaning(config: Config, made_for: Config) -> None:
    """Refuse an accelerator on which the program would have another meaning."""
    ours, theirs = config.to_dict(), made_for.to_dict()
    differing = [f"{name} {theirs[name]} (asked for {ours[name]})" for name in ours
                 if ours[name] != theirs[name] and name not in MICROARCHITECTURE]
    if differing:
        more = [f"{len(differing) - MOST_SHOWN} more"] * (len(differing) > MOST_SHOWN)
        shown = ", ".join((*differing[:MOST_SHOWN], *more))
        raise ExecutionError(f"the program is for another accelerator: {shown}; "
                             f"only {', '.join(MICROARCHITECTURE)} may differ")
